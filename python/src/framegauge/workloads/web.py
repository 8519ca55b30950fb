"""web: an event calendar on real servers, visited by users in a closed loop.

    h1 driver ─ h2 balancer ─┬─ h3 web-1 ─┬─ h5 database
                             └─ h4 web-2 ─┼─ h6 memcached
                                          └─ h7 files

nginx, uvicorn, PostgreSQL, memcached and nfs-ganesha; the site and its users are in `framegauge.apps.web`. All are
programs of a `Command`, whose machinery starts, watches and ends them.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from framegauge.apps.web import COMPONENTS
from framegauge.apps.web.browser import COUNT_PATH
from framegauge.apps.web.limits import LIMITS, SHARE
from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Json
from framegauge.workloads import own
from framegauge.workloads.base import Program
from framegauge.workloads.command import Command
from framegauge.workloads.readings import Reading
from framegauge.workloads.tasks import Readiness, Task

__all__ = ["METRICS", "NEEDS", "SATURATION", "Load", "Web", "web"]

POSTGRES = "/usr/lib/postgresql/*/bin/postgres"
GANESHA_PLUGINS = "/usr/lib/*/ganesha/libfsalvfs.so"
EXTRA = "pip install 'framegauge[web]'"
NEEDS = (
    Program("nginx", "nginx-light"),
    Program("memcached", "memcached"),
    Program("postgres", "postgresql", files=POSTGRES),
    Program("ganesha.nfsd", "nfs-ganesha"),
    Program("libfsalvfs.so", "nfs-ganesha-vfs", files=GANESHA_PLUGINS),
    Program("libnfs.so.13", "libnfs13", files="/usr/lib/*/libnfs.so.13"),
    *(
        Program(name, EXTRA, is_module=True)
        for name in ("starlette", "uvicorn", "uvloop", "httptools", "asyncpg", "aiomcache")
    ),
)
# By name: the place in the driver's result.
METRICS: Mapping[str, str] = {
    "operations": "operations_per_second",
    "response_mean": "response.mean_seconds",
    "response_p90": "response.p90_seconds",
}
SATURATION: Mapping[str, str] = {
    "saturation_users": "saturation.users",
    "saturation_operations": "saturation.operations_per_second",
}
START_SECONDS = 6.0  # for all servers and the data, roughly
GRACE_SECONDS = 30.0  # for the driver, after its own time
MOST_FLOWS = 500  # sizes of connections that the record keeps by component; of more, evenly chosen ones
SMALLEST_QUANTILE = 20  # operations that a run must have for its 90 % quantile

BALANCER = """\
daemon off;
user root;
worker_processes 1;
worker_rlimit_nofile 65536;
pid nginx.pid;
error_log stderr;
events { worker_connections 32768; }
http {
    access_log off;
    keepalive_timeout 3600s;
    keepalive_requests 1000000;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream site {
        least_conn;
        server SERVER1 max_fails=0;
        server SERVER2 max_fails=0;
        keepalive 64;
        keepalive_timeout 3600s;
        keepalive_requests 1000000;
    }
    server {
        listen LISTEN backlog=4096;
        location = COUNT { stub_status; }
        location / {
            proxy_pass http://site;
            proxy_http_version 1.1;
            proxy_set_header Connection "KEPT";
            proxy_next_upstream off;
        }
    }
}
"""
# Anyone in the emulated network may connect; nobody else reaches it.
ACCESS = "local all all trust\nhost all all all trust\n"
NFS = """\
NFS_CORE_PARAM { Protocols = 4; NFS_Port = 2049; Enable_UDP = false; Enable_NLM = false; Enable_RQUOTA = false;
    Plugins_Dir = "PLUGINS"; }
NFSV4 { Graceless = true; RecoveryBackend = "fs"; }
EXPORT { Export_Id = 1; Path = "{run}/images"; Pseudo = "/files"; Protocols = 4; Transports = TCP; Access_Type = RO;
    Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }
"""
# ganesha writes to folders of the system: it gets its own, in a mount namespace that ends with it.
NFS_START = """\
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/ganesha
[ ! -d /var/lib/nfs ] || { mount -t tmpfs tmpfs /var/lib/nfs; mkdir -p /var/lib/nfs/ganesha; }
exec ganesha.nfsd -f {run}/ganesha.conf -L {run}/ganesha.log -p /run/ganesha.pid -F
"""


@dataclass(frozen=True)
class Load:
    """What the users do, and what servers do beside answering them, in base units. `steps`: ever more users instead,
    as long as a share of each operation keeps its limit. `keep_alive`: whether servers keep their connections to one
    another."""

    users: int = 0
    think_seconds: float = 5.0
    ramp_up_seconds: float = 5.0
    steady_seconds: float = 20.0
    thumbnail_bytes: int = 3000
    browser_connections: int = 2
    page_cpu_seconds: float = 0.0
    page_wait_seconds: float = 0.0
    keep_alive: bool = True
    seed: int = 1
    steps: Sequence[int] = ()
    limits_seconds: Mapping[str, float] = field(default_factory=lambda: LIMITS)
    share: float = SHARE

    @property
    def most_seconds(self) -> float:
        """The time of all steps; a run ends sooner if limits are exceeded before the last."""
        return max(1, len(self.steps)) * (self.ramp_up_seconds + self.steady_seconds)


@dataclass(frozen=True)
class Web(Command):
    """The programs of the site, as `web` makes them."""

    needs: ClassVar[Sequence[Program]] = NEEDS

    def told(self, done: Sequence[Json], watched: Mapping[str, Json]) -> Json:
        """The driver's account, and the sizes of connections by component; ProgramFailure if it does not add up."""
        account: Json = json.loads(done[0]["texts"][None])
        _check(account)
        hosts = {members[0]: name for name, members in self.roles.items()}
        flows = {hosts[name]: _flows(answer["sockets"]) for name, answer in watched.items()}
        record: Json = {"web": {**account, "flows": flows}}
        if (reason := _unsaturated(account)) is not None:
            record["not_measured"] = dict.fromkeys(SATURATION, reason)
        return record


def _check(account: Json) -> None:
    """ProgramFailure if a request failed or is not accounted for, or if too few operations say anything."""
    counts = account["requests"]
    sent, answered, failed, received = (counts[name] for name in ("sent", "answered", "failed", "received"))
    if sent != answered + failed:
        raise ProgramFailure(
            f"web: found {sent} requests sent, {answered} answered and {failed} failed, expected all accounted for"
        )
    if failed:
        raise ProgramFailure(
            f"web: found {failed} of {sent} requests failed, expected none; {'; '.join(account['failures'])}"
        )
    if received != sent:
        raise ProgramFailure(f"web: found {received} requests received by the balancer, expected {sent} as sent")
    if account["operations"] < SMALLEST_QUANTILE:
        expected = f"{SMALLEST_QUANTILE} or more: more users, less time to think, or a longer `steady`"
        raise ProgramFailure(f"web: found {account['operations']} operations in the steady time, expected {expected}")
    for step in account.get("steps", ()):
        if not step["judged"]:
            raise ProgramFailure(
                f"web: found too few operations of every kind with {step['users']} users to judge their limits, "
                "expected enough of one: a longer `steady`, less time to think, or a larger `first`"
            )


def _unsaturated(account: Json) -> str | None:
    """Why a run in steps does not show how many users saturate the site; None if it does, or has no steps."""
    steps = account.get("steps", ())
    if not steps or account["saturation"]["users"]:
        return None
    step = steps[-1]
    if step["beyond"]:
        return f"{step['users']} users exceed limits ({step['beyond'][0]}); a smaller `first` may find how many do not"
    return f"{step['users']} users exceed no limit; a larger `most` may find how many do"


def web(load: Load, hosts: Sequence[str], **rest: Any) -> Web:
    """The site on these hosts, in the order of COMPONENTS; `rest` are fields of Command."""
    host = dict(zip(COMPONENTS, hosts, strict=False))
    roles = {name: (member,) for name, member in host.items()}
    paths = SATURATION if load.steps else METRICS
    return Web(
        name="web",
        roles=roles,
        prepare=[_database_made(host["database"]), _images_made(host["files"], load)],
        servers=_servers(host, load),
        clients=[_driver(host["driver"], load)],
        metrics_={name: Reading(json=path) for name, path in paths.items()},
        expect_seconds=START_SECONDS + load.most_seconds,
        **rest,
    )


def _found(pattern: str) -> Path:
    """The newest file of the pattern; that there is one is checked before anything is built."""
    return Path(max(glob.glob(pattern), default=pattern, key=lambda path: (len(path), path)))


def _database_made(host: str) -> Task:
    argv = (str(_found(POSTGRES).with_name("initdb")), "-D", "{run}/data", "-A", "trust", "--no-sync", "--locale=C")
    return Task((host,), (*argv, "-E", "UTF8"), user="postgres")


def _images_made(host: str, load: Load) -> Task:
    argv = own.python("web.files", "{run}/images", "--thumbnail-bytes", str(load.thumbnail_bytes))
    return Task((host,), argv, environment=own.modules())


def _servers(host: Mapping[str, str], load: Load) -> list[Task]:
    """In the order in which they need one another."""
    settings = {
        "listen_addresses": "{address}", "unix_socket_directories": "{run}", "hba_file": "{run}/access.conf",
        "fsync": "off", "shared_buffers": "32MB", "dynamic_shared_memory_type": "mmap",
    }  # fmt: skip
    database = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    server = {name: f"{{{host[name]}}}" for name in ("database", "memcached", "files")}
    site = own.python(
        "web.site", "--address", "{address}", *(word for name in server for word in (f"--{name}", server[name])),
        "--page-cpu", str(load.page_cpu_seconds), "--page-wait", str(load.page_wait_seconds),
        *([] if load.keep_alive else ["--no-keep-alive"]),
    )  # fmt: skip
    balancer = BALANCER.replace("LISTEN", "{address}:80").replace("COUNT", COUNT_PATH)
    balancer = balancer.replace("KEPT", "" if load.keep_alive else "close")
    for placeholder, name in (("SERVER1", "web-1"), ("SERVER2", "web-2")):
        balancer = balancer.replace(placeholder, f"{{{host[name]}}}:8000")
    return [
        Task(
            (host["database"],), (str(_found(POSTGRES)), "-D", "{run}/data", *database), user="postgres",
            files={"access.conf": ACCESS}, ready=_port(5432), name="database",
        ),
        Task(
            (host["memcached"],), ("memcached", "-u", "nobody", "-l", "{address}", "-U", "0", "-m", "64", "-t", "2"),
            ready=_port(11211), name="memcached",
        ),
        Task(
            (host["files"],), ("unshare", "--mount", "sh", "-c", NFS_START), ready=_port(2049), name="files",
            templates={"ganesha.conf": NFS.replace("PLUGINS", str(_found(GANESHA_PLUGINS).parent))},
        ),
        Task((host["web-1"],), (*site, "--fill"), environment=own.modules(), ready=_port(8000), name="web-1"),
        Task((host["web-2"],), site, environment=own.modules(), ready=_port(8000), name="web-2"),
        Task(
            (host["balancer"],), ("nginx", "-p", "{run}", "-c", "nginx.conf", "-e", "stderr"),
            templates={"nginx.conf": balancer}, ready=_port(80), name="balancer",
        ),
    ]  # fmt: skip


def _port(number: int) -> Readiness:
    return Readiness(within_seconds=20.0, port=str(number), seconds=None)


def _driver(host: str, load: Load) -> Task:
    limits = " ".join(f"{name}={seconds:g}" for name, seconds in load.limits_seconds.items())
    options = {
        "address": "{balancer}", "seed": load.seed, "think": load.think_seconds, "ramp-up": load.ramp_up_seconds,
        "steady": load.steady_seconds, "thumbnail-bytes": load.thumbnail_bytes, "processes": "{processes}",
        "connections": load.browser_connections, "limits": limits, "share": load.share,
    }  # fmt: skip
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    users = [str(count) for count in load.steps or (load.users,)]
    limit_seconds = load.most_seconds + GRACE_SECONDS
    return Task(
        (host,),
        own.python("web.driver", *words, "--users", *users),
        limit_seconds,
        environment=own.modules(),
        name="driver",
    )


def _flows(sockets: Sequence[Json]) -> Json:
    """The sizes of a component's connections with other hosts: bytes sent and received, in order."""
    outer = [socket for socket in sockets if not socket["loopback"]]
    sizes = sorted(socket["sent_bytes"] + socket["received_bytes"] for socket in outer if socket["connections"] == 1)
    step = max(1, len(sizes) / MOST_FLOWS)
    return {
        "connections": sum(socket["connections"] for socket in outer),
        "bytes": [sizes[int(index * step)] for index in range(min(len(sizes), MOST_FLOWS))],
    }
