"""How ``kv_router`` shows the cache's answers to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Answer = dict[str, Any]

MISSES = (
    "empty",
    "similarity",
    "target",
    "guard",
    "confidence",
    "no_target",
    "invalid_key",
)
CAUSES = ("request", "condition", "failure")


def show_explanation(answer: Answer) -> str:
    """Return a match's reasons as lines, and the decision that the task goes by."""
    found = f"hit: entry {answer['entry_id']}" if answer["hit"] else "miss"
    similarity, target = _number(answer["similarity"]), _number(answer["target_similarity"])
    worst = _number(answer["worst_slice_similarity"])
    rows = [
        ("similarity", f"{similarity} (threshold {answer['threshold']:.3f})"),
        ("margin", _number(answer["margin"])),
        ("target slice", f"{target} (minimum {answer['target_minimum']:.3f})"),
        ("worst slice", f"{answer['worst_slice'] or '-'} ({worst})"),
        ("guard", answer["guard"] or "none refused"),
        ("scene", answer["in_force"]["scene"] or "-"),
        ("subtask", answer["subtask"] or "-"),
        ("domain", answer["source_domain"] or "-"),
    ]
    text = f"{found} ({answer['reason'] or 'no reason given'})\n{_columns(rows)}"
    return f"{text}\n{_decision(answer['in_force'])}"


def show_entries(answer: Answer) -> str:
    """Return a row for each entry."""
    rows = [("id", "version", "domain", "intent", "subtask", "good", "bad", "state", "unused for")]
    rows += [
        (
            str(entry["entry_id"]),
            str(entry["entry_version"]),
            entry["domain"],
            entry["intent_id"],
            entry["subtask"],
            str(entry["successes"]),
            str(entry["failures"]),
            _state(entry),
            str(entry["unused_for"]),
        )
        for entry in answer["entries"]
    ]
    if len(rows) == 1:
        return "no entry"
    text = _columns(rows)
    if answer["remaining"]:
        last = answer["entries"][-1]["entry_id"]
        text += f"\nand {answer['remaining']} more: --after {last}"
    return text


def show_entry(answer: Answer) -> str:
    """Return one entry as lines."""
    info, behavior = answer["info"], answer["behavior"]
    rows = [
        ("version", str(info["entry_version"])),
        ("domain", info["domain"]),
        ("intent", info["intent_id"]),
        ("subtask", info["subtask"]),
        ("encoder", info["encoder_id"]),
        ("successes", str(info["successes"])),
        ("failures", f"{info['failures']} ({info['failures_in_row']} in a row)"),
        ("state", _state(info)),
        ("unused for", f"{info['unused_for']} decisions"),
    ]
    if info["has_behavior"]:
        knots, columns = behavior["knots"], behavior["dimension"]
        count = len(behavior["coefficients"]) // len(columns)
        rows += [
            ("motion", f"{knots[-1] - knots[0]:.3f} s, {count} coefficients a column"),
            ("columns", ", ".join(columns)),
        ]
    return f"entry {info['entry_id']}\n{_columns(rows)}"


def show_domains(answer: Answer) -> str:
    """Return a row for each domain, and why nothing can be shared now."""
    rows = [("domain", "entries", "not confident", "read by")]
    rows += [
        (
            domain["name"] + (" (own)" if domain["is_own"] else ""),
            str(domain["entries"]),
            str(domain["entries_not_confident"]),
            ", ".join(domain["readers"]) or "-",
        )
        for domain in answer["domains"]
    ]
    text = _columns(rows)
    if answer["identity_conflict"]:
        text += f"\nnothing can be shared while {answer['identity_conflict']}"
    return text


def show_grants(answer: Answer) -> str:
    """Return what was done, and the grants in force."""
    grants = [f"  {grant}" for grant in answer["grants"]] or ["  none"]
    return "\n".join([answer["message"], "in force:", *grants])


def show_message(answer: Answer) -> str:
    """Return what was done."""
    return str(answer["message"])


def show_statistics(answer: Answer) -> str:
    """Return a row for each layer and domain, and what counts for the whole cache."""
    rows = [
        ("layer", "domain", "entries", "decisions", "hits", "rate", "false hits", "misses", "gone")
    ]
    for layer in answer["layers"]:
        misses = {name: layer[f"misses_{name}"] for name in MISSES if layer[f"misses_{name}"]}
        gone = {
            cause: layer[f"invalidations_{cause}"]
            for cause in CAUSES
            if layer[f"invalidations_{cause}"]
        }
        if layer["evictions"]:
            gone["evicted"] = layer["evictions"]
        decisions = layer["decisions"]
        rows.append(
            (
                layer["layer"],
                layer["domain"],
                f"{layer['entries']}/{layer['capacity']}",
                str(decisions),
                str(layer["hits"]),
                f"{layer['hits'] / decisions:.3f}" if decisions else "-",
                str(layer["false_hits"]),
                _counts(misses),
                _counts(gone),
            )
        )
    times = [_number(answer[f"match_time_{name}_us"], 1) for name in ("p50", "p99", "max")]
    about = (
        f"robot {answer['robot_id']}: {answer['keys']} keys, {answer['keys_refused']} refused; "
        f"{answer['updates_refused']} updates refused; "
        f"match time p50 {times[0]}, p99 {times[1]}, max {times[2]} us over 10 s"
    )
    return f"{about}\n{_columns(rows)}"


def _decision(match: Answer) -> str:
    """Return a line about the decision in force."""
    if not match["decision_id"]:
        return f"no decision is in force: {match['reason']}"
    verdict = "hit" if match["hit"] else "miss"
    about = f"decision {match['decision_id']} of {match['subtask']} is in force"
    return f"{about}: {verdict} ({match['reason']})"


def _state(entry: Answer) -> str:
    if not entry["has_behavior"]:
        return "no behavior"
    return "confident" if entry["confident"] else "not confident"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "-"


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
