"""The workload `web` in a study file: what it may say, and what is named before anything is built."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import yaml

from framegauge.apps.web import COMPONENTS
from framegauge.apps.web.limits import LIMITS, SHARE
from framegauge.cli import commands
from framegauge.errors import FramegaugeError
from framegauge.experiment.forecast import forecast
from framegauge.experiment.planning import missing_programs, workload_of
from framegauge.files.placeholders import placeholders
from framegauge.metrics import METRICS
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.workloads import web as workload
from framegauge.workloads.web import Web

BED = {"kind": "rack", "topology": "rack", "hosts": 7}


def study(web: dict[str, Any] | None = None, **rest: Any) -> Study:
    asked = {
        "testbed": BED, "factors": {"mtu": {"levels": [1500, 9000], "baseline": 1500}},
        "workloads": [{"web": web or {}}], **rest,
    }  # fmt: skip
    return study_file.parse(yaml.safe_dump(asked, sort_keys=False), "study.yaml")


def made(asked: Study) -> Web:
    found = workload_of(asked, block_order(asked, 0)[0])
    assert isinstance(found, Web)
    return found


def test_without_margins_its_own_metrics_are_judged() -> None:
    assert set(study().margin()) == {"operations", "response_mean", "response_p90"} == set(workload.METRICS)
    assert METRICS["operations"].higher_is_better
    assert not METRICS["response_p90"].higher_is_better


def test_users_and_sizes_are_conditions_and_times_are_not() -> None:
    found = study({"users": [50, 150], "thumbnail": ["1 kB", "3 kB"]}).workloads[0].parameters.conditions()
    assert [(each["users"], each["thumbnail_bytes"]) for each in found] == [
        (50, 1000), (50, 3000), (150, 1000), (150, 3000),
    ]  # fmt: skip
    assert {(each["think_seconds"], each["ramp_up_seconds"], each["steady_seconds"]) for each in found} == {(5, 5, 20)}


def test_what_is_not_as_usual_is_a_condition_and_reaches_the_programs() -> None:
    usual = study().workloads[0].parameters.conditions()[0]
    assert set(usual) == {"users", "thumbnail_bytes", "think_seconds", "ramp_up_seconds", "steady_seconds"}
    asked = study({"connections": 1, "page_cpu": "5 ms", "page_wait": "250 ms", "keep_alive": False})
    (found,) = asked.workloads[0].parameters.conditions()
    assert {name: found[name] for name in found if name not in usual} == {
        "browser_connections": 1, "page_cpu_seconds": 0.005, "page_wait_seconds": 0.25, "keep_alive": False,
    }  # fmt: skip
    sites = {"default": made(study()), "asked": made(asked)}
    words = {name: next(each for each in one.servers if each.name == "web-1").argv for name, one in sites.items()}
    assert "--no-keep-alive" in words["asked"]
    assert "--no-keep-alive" not in words["default"]
    assert words["asked"][words["asked"].index("--page-wait") + 1] == "0.25"
    balancers = {name: next(each for each in one.servers if each.name == "balancer") for name, one in sites.items()}
    kept = {name: 'Connection "";' in each.templates["nginx.conf"] for name, each in balancers.items()}
    assert kept == {"default": True, "asked": False}


def test_users_until_the_site_is_saturated_are_one_condition_and_two_metrics() -> None:
    rule = {"first": 10, "step": 20, "most": 70, "quantile": "95 %", "limits": {"home": "500 ms"}}
    asked = study({"users": "saturate", "saturate": rule, "ramp_up": "2 s", "steady": "10 s"})
    assert set(asked.margin()) == {"saturation_users", "saturation_operations"} == set(workload.SATURATION)
    assert METRICS["saturation_users"].higher_is_better
    assert METRICS["saturation_operations"].higher_is_better
    assert [each["users"] for each in asked.workloads[0].parameters.conditions()] == ["saturate"]
    driver = made(asked).clients[0].argv
    assert driver[-5:] == ("--users", "10", "30", "50", "70")
    assert driver[driver.index("--limits") + 1].startswith("home=0.5 login=1 event=2 ")
    assert driver[driver.index("--share") + 1] == "0.95"
    assert made(asked).expected_seconds(None) == pytest.approx(workload.START_SECONDS + 4 * 12)
    assert study_file.parse(study_file.dump(asked), "again.yaml") == asked


def test_without_settings_the_published_limits_hold() -> None:
    found = study({"users": "saturate"}).workloads[0].web
    assert found is not None
    assert found.saturate is not None
    assert found.saturate.limits == LIMITS
    assert found.saturate.quantile == SHARE
    assert found.saturate.steps == list(range(50, 501, 50))


def test_the_forecast_counts_every_step() -> None:
    """Of 2 blocks of 2 runs, each of 10 steps of 25 s, with about 7 s for all else."""
    found = forecast(study({"users": "saturate"}, control=False, blocks=2, budget="2 h"), {}, {})
    assert 4 * 255 < found["seconds"] < 4 * 259
    assert {each["metric"]: each["spread_is"] for each in found["reach"]} == dict.fromkeys(
        workload.SATURATION, "guessed"
    )


def test_all_arms_of_a_block_have_the_same_users_and_blocks_have_others() -> None:
    asked = study(
        factors={"mtu": [1500, 9000], "nagle": {"levels": [False, True], "baseline": False}}, treatment="nagle"
    )
    words = [[workload_of(asked, slot).clients[0].argv for slot in block_order(asked, block)] for block in (0, 1)]  # type: ignore[attr-defined]
    assert [len(set(each)) for each in words] == [1, 1]
    assert words[0][0] != words[1][0]


def test_every_placeholder_of_its_programs_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload.own.sys, "path", ["/nowhere"])
    found = made(study())
    known = {"address", "run", "processes", *COMPONENTS, *(f"h{number}" for number in range(1, 8))}
    for task in (*found.prepare, *found.servers, *found.clients):
        for text in (*task.argv, *task.environment.values(), *task.templates.values()):
            assert set(placeholders(text)) <= known, text
    assert [name for task in found.servers for name in (task.name,)] == [
        "database", "memcached", "files", "web-1", "web-2", "balancer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("web", "rest", "line"),
    [
        (
            {},
            {"testbed": {**BED, "hosts": 6}},
            'workloads.0.web: found "6 hosts", expected topology: rack with at least 7 hosts',
        ),
        ({}, {"testbed": {"kind": "fake", "topology": "rack", "hosts": 7}}, "expected rack or veth for web"),
        ({}, {"testbed": {**BED, "family": 6}}, 'found "family: 6", expected testbed.family 4'),
        ({"users": 0}, {}, "workloads.0.web.users: found 0, expected a number of users from 1 to 5000, a list of such"),
        ({"users": []}, {}, "workloads.0.web.users"),
        ({"users": [5, "saturate"]}, {}, "workloads.0.web.users"),
        ({"users": "saturated"}, {}, 'found "saturated", expected a number of users from 1 to 5000, a list of such'),
        ({"saturate": {}}, {}, 'saturate: found "users: [50]", expected users: saturate beside it'),
        ({"users": "saturate", "saturate": {"most": 99}}, {}, "saturate.most: found 99, expected at least 100"),
        (
            {"users": "saturate", "saturate": {"step": 9}},
            {},
            'saturate.step: found "9 (51 steps)", expected a larger one, for at most 50 steps',
        ),
        (
            {"users": "saturate", "saturate": {"quantile": "99.9 %"}},
            {},
            'saturate.quantile: found "99.9 %", expected 50 % to 99 %',
        ),
        (
            {"users": "saturate", "saturate": {"limits": {"serch": "1 s"}}},
            {},
            'saturate.limits.serch: found "serch", expected an operation: "search"',
        ),
        (
            {"users": "saturate", "saturate": {"limits": {"search": "0 s"}}},
            {},
            'saturate.limits.search: found "0 s", expected more than 0 s',
        ),
        (
            {"users": "saturate", "steady": "25 min"},
            {},
            'workloads.0.web: found "10 steps of 1505 s", expected 4 h or less altogether',
        ),
        ({"think": "5"}, {}, "workloads.0.web.think"),
        ({"steady": "0.5 s"}, {}, 'found "0.5 s", expected 1 s or more'),
        ({"page_wait": "9 s"}, {}, 'found "9 s", expected at most 5 s'),
        ({"connections": 17}, {}, "found 17, expected at most 16"),
        ({"thumbnail": "100 kB"}, {}, "found 100000, expected at most 60000 bytes"),
        ({"nagle_on": ["balancr"]}, {}, 'nagle_on: found "balancr", expected a component or a host'),
    ],
)
def test_what_it_cannot_do_is_refused_where_it_stands(web: dict[str, Any], rest: dict[str, Any], line: str) -> None:
    with pytest.raises(FramegaugeError) as refused:
        study(web, **rest)
    assert line in str(refused.value)
    assert str(refused.value).startswith("study.yaml:")
    assert "\n" not in str(refused.value)


def test_nagle_is_set_on_all_components_or_on_those_that_are_named() -> None:
    parameters = study({"nagle_on": ["balancer", "h5"]}).workloads[0].web
    every = study().workloads[0].web
    assert parameters is not None
    assert every is not None
    hosts = [f"h{number}" for number in range(1, 9)]
    assert parameters.nagle_hosts(hosts) == ["h2", "h5"]
    assert every.nagle_hosts(hosts) == hosts[:7]


def test_all_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("framegauge.workloads.base.glob.glob", lambda pattern: [])
    found = {each["name"]: each["remedy"] for each in missing_programs(study(), "/nowhere")}
    assert found == {
        "nginx": "apt-get install nginx-light",
        "memcached": "apt-get install memcached",
        "postgres": "apt-get install postgresql",
        "ganesha.nfsd": "apt-get install nfs-ganesha",
        "libfsalvfs.so": "apt-get install nfs-ganesha-vfs",
        "libnfs.so.13": "apt-get install libnfs13",
        **dict.fromkeys(
            ("starlette", "uvicorn", "uvloop", "httptools", "asyncpg", "aiomcache"), "pip install 'framegauge[web]'"
        ),
    }


def test_the_results_say_what_its_metrics_are() -> None:
    """Without that a folder could not be judged again by another process."""
    plan = commands.plan_of(study(), ())
    assert {name: each["unit"] for name, each in plan["metrics"].items()} == {
        "operations": "per_second", "response_mean": "seconds", "response_p90": "seconds",
    }  # fmt: skip
