"""Raw files, checkpoints, disk space and a hub of made-up machines."""

from __future__ import annotations

import http.server
import re
import threading
from pathlib import Path

import pytest

from geosd.files import bytes_of_files
from geosd.prerequisites.checks import (
    check_checkpoint_prerequisite,
    check_disk,
    check_gpu_memory,
    check_hub_cache,
    check_local_gpus,
    check_raw_file_prerequisite,
    hub_answers,
)

NAMES = ("train.parquet", "bench/aime24.jsonl", "bench/math500.jsonl")


@pytest.fixture
def raw(tmp_path):
    (tmp_path / "train.parquet").touch()
    return tmp_path


def test_raw_files_that_are_not_available_are_named(raw):
    check = check_raw_file_prerequisite(
        raw, NAMES, cached=["bench/aime24.jsonl"], hub_answers=False
    )
    assert check.state == "missing"
    assert "math500" in check.found and "aime24" not in check.found and "train" not in check.found


def test_raw_files_may_come_from_the_folder_the_cache_or_the_hub(raw):
    check = check_raw_file_prerequisite(raw, NAMES, cached=["bench/aime24.jsonl"], hub_answers=True)
    assert check.state == "ok"
    assert check.found.startswith("1 in the folder, 1 in the hub's cache, 1 on the hub")
    assert check_raw_file_prerequisite(raw, NAMES[:1], cached=[], hub_answers=False).state == "ok"


@pytest.mark.parametrize(
    ("cached", "answers", "on_nodes", "state"),
    [
        (True, False, True, "ok"),
        (False, True, False, "ok"),  # the job runs here, and fetches
        (False, True, True, "missing"),  # the job runs on a node, which may have no network
        (False, False, False, "missing"),
    ],
)
def test_a_checkpoint_must_be_where_the_job_that_reads_it_finds_it(
    cached, answers, on_nodes, state
):
    check = check_checkpoint_prerequisite(
        "qwen3-8b", "Qwen/Qwen3-8B", "b968", cached, answers, on_nodes
    )
    assert check.state == state
    assert state == "ok" or "hf download Qwen/Qwen3-8B --revision b968" in check.cure


def test_a_cache_in_the_home_folder_is_doubted_where_nodes_read_it():
    home = Path.home() / ".cache/huggingface/hub"
    assert check_hub_cache(home, token=False, on_nodes=True).state == "unknown"
    assert check_hub_cache(home, token=False, on_nodes=False).state == "ok"
    assert "token is set" in check_hub_cache(Path("/shared/hf"), token=True, on_nodes=True).found


def test_a_full_disk_is_missing_and_what_is_there_need_not_be_written_again(tmp_path):
    check = check_disk(tmp_path, free=2 * 10**12, planned=8.6e12, written=0)
    assert check.state == "missing" and "2.00 TB free" in check.found and "8.60 TB" in check.found
    assert check_disk(tmp_path, free=2 * 10**12, planned=8.6e12, written=7 * 10**12).state == "ok"
    assert check_disk(tmp_path, free=0, planned=1.0, written=2).state == "ok"


def test_bytes_are_those_of_all_files_below_the_folders_that_exist(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/one").write_bytes(bytes(3))
    (tmp_path / "a/b/two").write_bytes(bytes(4))
    assert bytes_of_files([tmp_path / "a", tmp_path / "absent"]) == 7


@pytest.fixture
def hub():
    """A server that says 405 to HEAD, which is an answer, and counts."""

    class Handler(http.server.BaseHTTPRequestHandler):
        requests = 0

        def do_HEAD(self):
            Handler.requests += 1
            self.send_error(405)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server
        server.shutdown()


def test_any_answer_counts(hub):
    assert hub_answers(hub.url, offline=False)
    assert hub.RequestHandlerClass.requests == 1


def test_nothing_is_requested_offline(hub):
    assert not hub_answers(hub.url, offline=True)
    assert hub.RequestHandlerClass.requests == 0


def test_a_closed_port_gives_no_answer(hub):
    hub.server_close()
    assert not hub_answers(hub.url, offline=False, timeout_s=1)


@pytest.mark.parametrize(
    ("visible", "on_login_node", "pages"),
    [
        (0, False, ["docs/quickstart.md", "docs/cluster.md"]),
        (1, False, ["studies for one GPU: docs/gpu.md", "docs/cluster.md"]),
        (2, False, ["for a server: docs/gpu.md", "docs/cluster.md"]),
        (0, True, ["--profile slurm", "docs/cluster.md"]),
    ],
)
def test_the_hint_for_too_few_gpus_leads_to_the_page_of_the_machine(
    root, visible, on_login_node, pages
):
    check = check_local_gpus(3, visible, on_login_node)
    assert check.state == "missing" and f"shows {visible}" in check.found
    assert all(page in check.cure for page in pages)
    assert all((root / page).exists() for page in re.findall(r"docs/\w+\.md", check.cure))
    assert ("gpu.md" in check.cure) == (visible > 0)
    assert check_local_gpus(3, 3, on_login_node).state == "ok"


def test_the_memory_of_the_smallest_gpu_is_held_to_each_job():
    parts = {"a/train": 96e9, "a/pool": 20e9}
    check = check_gpu_memory(parts, int(86e9))
    assert check.state == "missing" and "a/train (96 GB)" in check.found
    assert "a/pool" not in check.found
    assert check_gpu_memory(parts, int(96e9)).state == "ok"
    assert check_gpu_memory(parts, None).state == "unknown"
