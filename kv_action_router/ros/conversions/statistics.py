"""CacheReport -> CacheStatistics; one way, since nothing in the core reads statistics back."""

from __future__ import annotations

from kv_action_router.caching.statistics import CacheReport, LayerReport
from kv_action_router.msg import CacheStatistics, LayerStatistics


def cache_report_to_msg(report: CacheReport, robot_id: str) -> CacheStatistics:
    """Return the message of a report; the header is not set."""
    return CacheStatistics(
        robot_id=robot_id,
        layers=[layer_report_to_msg(layer) for layer in report.layers],
        keys=int(report.keys),
        keys_refused=int(report.keys_refused),
        updates_refused=int(report.updates_refused),
        match_time_p50_us=float(report.match_time_p50_us),
        match_time_p99_us=float(report.match_time_p99_us),
        match_time_max_us=float(report.match_time_max_us),
        stored=report.store.stored,
        store=report.store.where,
        entries_loaded=report.store.loaded,
        entries_quarantined=report.store.quarantined,
        entries_lost=report.store.lost,
        changes_unsaved=report.store.unsaved,
        saves=report.store.saves,
        saves_failed=report.store.saves_failed,
    )


def layer_report_to_msg(report: LayerReport) -> LayerStatistics:
    """Return the message of one layer in one domain."""
    message = LayerStatistics(
        layer=report.layer,
        domain=report.domain,
        entries=int(report.entries),
        capacity=int(report.capacity),
        entries_not_confident=int(report.entries_not_confident),
    )
    for name in report.counters.__slots__:
        setattr(message, name, int(getattr(report.counters, name)))
    return message
