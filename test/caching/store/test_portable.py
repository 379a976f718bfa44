"""A cache in one file that explains itself, and back."""

from __future__ import annotations

import gzip
import json
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from kv_action_router.caching.store.portable import FORMAT, export, load_into
from kv_action_router.caching.store.recorder import record_of
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.cli.main import main
from kv_action_router.contracts import UpdateOperation
from kv_action_router.errors import StoreError


def filled(bench) -> dict[int, tuple]:
    """Fill the file with entries, a grant and an execution value; return the rows."""
    manager = bench.start(execution=bench.build.execution(1, 0))
    for number in range(6):
        bench.insert(manager, number)
    bench.insert(manager, 7, domain="r2", encoder_id="编码")
    manager.apply(bench.build.update(UpdateOperation.FAILURE, entry=2, version=1))
    manager.set_isolation("r2", "r1", isolated=False)
    rows = {name: record_of(manager.entries, name).row() for name in manager.entries.tasks.slots}
    bench.stop(manager)
    return rows


@pytest.mark.parametrize("name", ["cache.jsonl", "cache.jsonl.gz"])
def test_everything_goes_and_comes_back_bit_by_bit(bench, tmp_path: Path, name: str) -> None:
    before = filled(bench)
    portable, other = tmp_path / name, tmp_path / "other.sqlite3"
    with closing(CacheStore(bench.path)) as store:
        done = export(store, portable)
    assert (done.entries, done.grants, done.execution_values) == (7, 1, 1)
    with closing(CacheStore(other)) as store:
        assert load_into(store, portable) == done
    manager = bench.start(other, execution=bench.build.execution(1, 0))
    assert {n: record_of(manager.entries, n).row() for n in manager.entries.tasks.slots} == before
    assert manager.domains.grants == {("r2", "r1")}
    assert bench.hits(manager, 7)


def test_the_file_explains_itself(bench, tmp_path: Path) -> None:
    filled(bench)
    portable = tmp_path / "cache.jsonl"
    with closing(CacheStore(bench.path)) as store:
        export(store, portable)
    lines = [json.loads(line) for line in portable.read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["format"], lines[0]["version"]) == (FORMAT, 1)
    assert lines[0]["means"]["behavior.knots"] == "s"
    first = lines[1]["entry"]
    assert (first["domain"], first["intent_id"], first["failures"]) == ("r1", "touch", 0)
    assert first["behavior"]["dimensions"][0] == "shoulder/position"
    assert lines[-1]["end"] == len(lines) - 2


def test_imported_entries_get_ids_of_their_own(bench, tmp_path: Path) -> None:
    filled(bench)
    portable = tmp_path / "cache.jsonl"
    with closing(CacheStore(bench.path)) as store:
        export(store, portable)
    with closing(CacheStore(bench.path)) as store:
        done = load_into(store, portable)
    assert (done.entries, done.grants, done.execution_values) == (7, 0, 0)
    manager = bench.start()
    assert sorted(manager.entries.tasks.slots) == list(range(1, 15))
    assert bench.insert(manager, 50) == 15


def spoiled(path: Path, change) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(lines)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "its end is missing"),
        (lambda lines: lines[:3] + lines[4:], "its end does not fit"),
        (lambda lines: [*lines, lines[1]], "its end does not fit"),
        (lambda lines: [lines[0], lines[1].replace(b"1", b"2"), *lines[2:]], "does not fit"),
        (lambda lines: lines[1:], "must begin with the format"),
        (lambda lines: [lines[0].replace(b'"version":1', b'"version":9'), *lines[1:]], "got 9"),
        (lambda lines: [b"\xff\xfe\n"], "is damaged"),
        (lambda lines: [], "is damaged"),
        (lambda lines: [lines[0], b'{"photo":1}\n'], "nobody knows"),
        (lambda lines: [lines[0], b"[]\n"], "is damaged"),
    ],
)
def test_half_a_file_adds_nothing(bench, tmp_path: Path, change, message: str) -> None:
    filled(bench)
    portable = tmp_path / "cache.jsonl"
    with closing(CacheStore(bench.path)) as store:
        export(store, portable)
    spoiled(portable, change)
    other = tmp_path / "other.sqlite3"
    with closing(CacheStore(other)) as store, pytest.raises(StoreError, match=message):
        load_into(store, portable)
    assert len(bench.start(other).entries) == 0


def test_half_a_zipped_file(bench, tmp_path: Path) -> None:
    portable = tmp_path / "cache.jsonl.gz"
    with gzip.open(portable, "wb") as file:
        file.write(b'{"format":"' * 1000)
    portable.write_bytes(portable.read_bytes()[:20])
    with closing(CacheStore(bench.path)) as store, pytest.raises(StoreError, match="is damaged"):
        load_into(store, portable)


def test_an_entry_that_no_insertion_takes_is_refused(bench, tmp_path: Path) -> None:
    filled(bench)
    with closing(CacheStore(bench.path)) as store:
        export(store, portable := tmp_path / "cache.jsonl")
    lines = [json.loads(line) for line in portable.read_text(encoding="utf-8").splitlines()]
    lines[1]["entry"]["behavior"]["coefficients"] = []
    text = [json.dumps(line).encode() + b"\n" for line in lines[:-1]]
    text.append(json.dumps({"end": len(text) - 1, "crc32": zlib.crc32(b"".join(text))}).encode())
    portable.write_bytes(b"".join(text))
    with closing(CacheStore(tmp_path / "other.sqlite3")) as store:
        done = load_into(store, portable)
    assert done.entries == 6
    assert list(done.refused) == [1]


def test_the_command_line(bench, tmp_path: Path, capsys) -> None:
    filled(bench)
    portable, other = str(tmp_path / "cache.jsonl"), str(tmp_path / "other.sqlite3")
    own = ["--robot-id", "r1", "--file"]
    assert main(["store", "export", *own, str(bench.path), portable]) == 0
    assert main(["store", "import", *own, other, portable, "--json"]) == 0
    assert main(["store", "info", *own, other]) == 0
    told = capsys.readouterr().out
    assert '"entries": 7' in told
    assert "r2 -> r1" in told
    assert main(["store", "info", *own, str(tmp_path / "none.sqlite3")]) == 1
    assert "there is no file" in capsys.readouterr().err
    manager = bench.start()
    assert main(["store", "export", *own, str(bench.path), portable]) == 1
    assert "in use by pid" in capsys.readouterr().err
    bench.stop(manager)
