"""Metrics can be read by Prometheus, are documented, and the dashboard uses those that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from auroral.server import metrics
from auroral.server.metrics import ServerFigures, metrics_text
from tests.server.feeding import Served, served
from tests.server.test_client import plant

ROOT = Path(__file__).parents[2]
FIGURES: ServerFigures = {
    "connections": 3,
    "sockets": 2,
    "requests": {200: 10, 404: 1},
    "request_seconds": 1.5,
    "feeds": {
        "reports=127.0.0.1:7000": {
            "connections": 1,
            "tuples": 5,
            "bytes": 90,
            "dead": 1,
            "refused": 0,
            "lost_bytes": 0,
        }
    },
    "ready": True,
    "version": "1",
    "started_s": 0.0,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(plant()) as found:
        client = found.client()
        client.enqueue("reports", [{"sid": 1, "pos": 31.0}, {"sid": "x"}])
        client.drain()
        yield found


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def names_of(text: bytes) -> set[str]:
    return {name for name, _ in samples(text)}


def full_stats(stats: dict[str, Any]) -> dict[str, Any]:
    """Statistics in which everything is known that may be."""
    for box in stats["boxes"].values():
        box |= {"oldest_s": 0.5, "held": 2, "late": {"slack": 1}, "cost_s": 0.1}
    for stream in stats["streams"].values():
        stream["late"] = {"below": 1}
    for output in stats["outputs"].values():
        output |= {"lag_s": 0.1, "behind_s": 0.2}
    stats["qos"] = {
        "hot": {
            "utility": 0.9,
            "latency": 0.9,
            "loss": 1.0,
            "value": 1.0,
            "good_zone": True,
            "delay_s": 0.1,
            "delay_p95_s": 0.2,
            "shed": 3,
            "shed_by": {"random": 3},
        }
    }
    stats["qos_outside"] = {"share": 0.25, "outputs": ["hot"]}
    stats["shedding"] |= {"load": 0.7}
    stats["steps"] |= {"median_s": 0.1, "last_s": 0.1}
    return stats


def test_the_figures_are_those_of_the_engine(server: Served) -> None:
    found = samples(metrics_text(server.engine.stats(), FIGURES))
    assert found["auroral_stream_tuples_total", (("stream", "reports"),)] == 1
    assert found["auroral_stream_dead_letters_total", (("stream", "reports"),)] == 1
    assert found["auroral_output_waiting_tuples", (("output", "hot"),)] == 1
    assert found["auroral_server_requests_total", (("status", "404"),)] == 1
    assert found["auroral_feed_tuples_total", (("feed", "reports=127.0.0.1:7000"),)] == 5
    assert found["auroral_process_resident_bytes", ()] > 1 << 20


def test_every_metric_is_documented(server: Served) -> None:
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    documented = set(re.findall(r"`(auroral_\w+)`", text))
    there = names_of(metrics_text(full_stats(server.engine.stats()), FIGURES))
    assert there == documented


def test_the_dashboard_uses_metrics_that_exist(server: Served) -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())
    there = names_of(metrics_text(full_stats(server.engine.stats()), FIGURES))
    asked = [t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", [])]
    asked += [v["query"] for v in dashboard["templating"]["list"] if isinstance(v["query"], str)]
    used = set(re.findall(r"auroral_\w+", " ".join(asked)))
    assert len(used) > 15
    assert used <= there
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def test_many_queries_are_told_in_total_only(server: Served) -> None:
    stats = server.engine.stats()
    query = {"matches": 2, "errors": 1, "shared": True}
    stats["queries"] = {f"q{i}": dict(query) for i in range(metrics.MOST_QUERIES)}
    few = samples(metrics_text(stats))
    assert few["auroral_query_matches_total", (("query", "q7"),)] == 2
    stats["queries"]["one_more"] = dict(query)
    found = samples(metrics_text(stats))
    assert not [name for name, _ in found if name.startswith("auroral_query_")]
    assert found["auroral_queries_matches_total", ()] == 2 * (metrics.MOST_QUERIES + 1)
    assert found["auroral_unlisted", (("kind", "queries"),)] == metrics.MOST_QUERIES + 1


def test_the_number_of_boxes_is_bounded(server: Served) -> None:
    stats = server.engine.stats()
    box = next(iter(stats["boxes"].values()))
    stats["boxes"] = {f"b{i}": box for i in range(metrics.MOST_NAMES + 5)}
    found = samples(metrics_text(stats))
    assert sum(name == "auroral_box_calls_total" for name, _ in found) == metrics.MOST_NAMES
    assert found["auroral_unlisted", (("kind", "boxes"),)] == 5


def test_the_server_tells_them_to_viewers(server: Served) -> None:
    url = f"{server.url}/metrics"
    assert httpx.get(url).status_code == 401
    token = {"Authorization": f"Bearer {server.tokens['viewer']}"}
    answer = httpx.get(url, headers=token)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(answer.content)
    assert found["auroral_server_ready", ()] == 1
    assert found["auroral_server_connections", ()] == 1
    assert found["auroral_stream_tuples_total", (("stream", "reports"),)] == 1


def test_a_server_whose_engine_failed_still_answers() -> None:
    found = samples(metrics_text({}, {**FIGURES, "ready": False}))
    assert found["auroral_server_ready", ()] == 0
    assert not [name for name, _ in found if name.startswith("auroral_stream")]
