"""A Hadoop cluster as programs on hosts: the first host is the master, every other one a worker. Pure.

Each daemon is a Java program of its own, without Hadoop's scripts, and everything that it writes is in the run's
folder: data, logs, and what Java and YARN would put into the system's folder for temporary files. All hosts have the
same configuration, with their own names in it. The sizes of heaps are small, so that a cluster fits on one machine.

Services have fixed ports, so that the bytes of the shuffle, of HDFS and of remote calls can be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from framegauge.workloads import frozen
from framegauge.workloads.tasks import Readiness, Task

__all__ = ["HDFS_PORT", "HISTORY", "SHUFFLE_PORT", "Cluster", "purpose"]

SHUFFLE_PORT = 13562
HDFS_PORT = 9866
NAME_NODE_PORT = 9000
HISTORY = "/history"  # in HDFS: what the masters of jobs write of each when it ends
TASK_MB = 384  # of memory, which YARN gives to each map, reduce and master of a job
START_SECONDS = 300.0  # for a daemon, on a machine on which all others start as well

# Many of these programs share a CPU, so their start counts: the quick compiler, the simple collector, no verification
# of what has a checksum already; and no file outside the folder.
_FLAGS = (
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss512k",
    "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote",
    "-Djava.net.preferIPv4Stack=true",
)  # fmt: skip
_OPENS = tuple(f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in ("lang", "util", "nio"))
_PASSED = "JAVA_HOME,HADOOP_CONF_DIR,LD_PRELOAD,FRAMEGAUGE_NODELAY,MALLOC_ARENA_MAX"  # from a node to its tasks
_MARK = "HADOOP_CONF_DIR={run}/conf"  # in the environment of all processes, those that YARN has started among them
_LOG = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{{ISO8601}} %p %c{{1}}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
"""


def purpose(port: int | None) -> str:
    """What the traffic of a server's port is: shuffle, hdfs, or rpc for all others."""
    return {SHUFFLE_PORT: "shuffle", HDFS_PORT: "hdfs"}.get(port or 0, "rpc")


@dataclass(frozen=True)
class Cluster:
    """The programs of a cluster. `files` is the folder with Hadoop's own. `is_stored_on_master`: HDFS keeps its blocks
    on the master, not on the workers. `at_once`: the fetches of a reducer; `reduces_at_once`: the reducers of a job
    that may run at a time (0: all)."""

    files: str
    master: str
    workers: Sequence[str]
    block_bytes: int
    replication: int = 1
    slots: int = 3
    is_stored_on_master: bool = False
    at_once: int = 5
    reduces_at_once: int = 0

    def prepare(self) -> list[Task]:
        """What runs before the daemons."""
        argv = self._java(
            "org.apache.hadoop.hdfs.server.namenode.NameNode", 160, "-format", "-force", "-nonInteractive"
        )
        return [Task((self.master,), argv, START_SECONDS, self.environment, templates=self.configuration())]

    def servers(self) -> list[Task]:
        """The daemons. Each kind starts on all of its hosts at once; when the last is ready, all have registered."""
        hdfs, yarn = "org.apache.hadoop.hdfs.server", "org.apache.hadoop.yarn.server"
        return [
            self._server(
                (self.master,), f"{hdfs}.namenode.NameNode", 160,
                Readiness(START_SECONDS, str(NAME_NODE_PORT), seconds=None),
            ),
            self._server((self.master,), f"{yarn}.resourcemanager.ResourceManager", 192, Readiness(seconds=0.0)),
            self._server(
                self.stores, f"{hdfs}.datanode.DataNode", 96,
                Readiness(START_SECONDS, words="successfully registered with NN", seconds=None),
            ),
            self._server(
                tuple(self.workers), f"{yarn}.nodemanager.NodeManager", 128,
                Readiness(START_SECONDS, words="Registered with ResourceManager as", seconds=None),
            ),
        ]  # fmt: skip

    @property
    def stores(self) -> tuple[str, ...]:
        """The hosts with a DataNode."""
        return (self.master,) if self.is_stored_on_master else tuple(self.workers)

    def job(self, main: str, settings: Mapping[str, object], *words: str, within: float) -> Task:
        """A job that is started from the master, and ends with it."""
        options = [f"-D{name}={value}" for name, value in settings.items()]
        return Task((self.master,), self._java(main, 192, *options, *words), within, self.environment)

    def read(self, *patterns: str) -> Task:
        """Prints files of HDFS."""
        argv = self._java("org.apache.hadoop.fs.FsShell", 128, "-cat", *patterns)
        return Task((self.master,), argv, START_SECONDS, self.environment)

    def stop(self) -> Task:
        """Stops every process of the cluster, and waits until the last packets have arrived."""
        return frozen.stop((self.master, *self.workers), _MARK)

    def resume(self) -> Task:
        """Has what `stop` has stopped go on."""
        return frozen.resume((self.master, *self.workers), _MARK)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of all programs; memory that is freed goes back, whatever the number of CPUs."""
        return {"HADOOP_CONF_DIR": "{run}/conf", "HADOOP_USER_NAME": "hadoop", "MALLOC_ARENA_MAX": "2"}

    def _server(self, hosts: tuple[str, ...], main: str, heap_mb: int, ready: Readiness) -> Task:
        return Task(hosts, self._java(main, heap_mb), environment=self.environment, templates=self.configuration(),
                    ready=ready)  # fmt: skip

    def _java(self, main: str, heap_mb: int, *words: str) -> tuple[str, ...]:
        return (
            "java", f"-Xmx{heap_mb}m", *_FLAGS, *_OPENS, "-Djava.io.tmpdir={run}/tmp", "-Dhadoop.log.dir={run}/logs",
            "-cp", self.classpath, main, *words,
        )  # fmt: skip

    @property
    def classpath(self) -> str:
        """The configuration, and Hadoop's files."""
        return f"{{run}}/conf:{self.files}/*"

    def configuration(self) -> dict[str, str]:
        """All files of the configuration, below the run's folder."""
        sites = {
            "core": self._core(), "hdfs": self._hdfs(), "yarn": self._yarn(), "mapred": self._mapred(),
            "capacity-scheduler": _scheduler(),
        }  # fmt: skip
        files = {
            f"conf/{name}.xml" if name == "capacity-scheduler" else f"conf/{name}-site.xml": _site(values)
            for name, values in sites.items()
        }
        # Daemons look for the folders of their pages, and Java for the one of its temporary files.
        empty = dict.fromkeys(("conf/webapps/hdfs/none", "conf/webapps/datanode/none", "tmp/none", "logs/none"), "")
        return {**files, "conf/log4j.properties": _LOG, **empty}

    def _core(self) -> dict[str, object]:
        return {
            "fs.defaultFS": f"hdfs://{self.master}:{NAME_NODE_PORT}",
            "hadoop.tmp.dir": "{run}/data",
            "ipc.client.connect.retry.interval": 250,
        }

    def _hdfs(self) -> dict[str, object]:
        return {
            "dfs.replication": self.replication,
            "dfs.blocksize": self.block_bytes,
            "dfs.namenode.fs-limits.min-block-size": 1 << 20,
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.safemode.extension": 0,
            "dfs.heartbeat.interval": 1,
            "dfs.datanode.hostname": "{host}",
            "dfs.namenode.name.dir": "file://{run}/data/name",
            "dfs.datanode.data.dir": "file://{run}/data/blocks",
        }

    def _yarn(self) -> dict[str, object]:
        return {
            "yarn.resourcemanager.hostname": self.master,
            "yarn.resourcemanager.connect.retry-interval.ms": 1000,
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 250,
            "yarn.resourcemanager.max-completed-applications": 10,
            "yarn.nodemanager.hostname": "{host}",
            "yarn.nodemanager.bind-host": "0.0.0.0",
            "yarn.nodemanager.address": "{host}:8041",
            "yarn.nodemanager.aux-services": "mapreduce_shuffle",
            "yarn.nodemanager.local-dirs": "{run}/data/local",
            "yarn.nodemanager.log-dirs": "{run}/logs/containers",
            "yarn.node-attribute.fs-store.root-dir": "file://{run}/data/attributes",
            "yarn.nodemanager.node-attributes.provider.fetch-interval-ms": 600_000,
            "yarn.nodemanager.resource.memory-mb": self.slots * TASK_MB,
            "yarn.nodemanager.resource.cpu-vcores": 8,
            "yarn.scheduler.minimum-allocation-mb": 128,
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.vmem-check-enabled": "false",
            # No limit is checked, and a look at all processes of the machine, by every node, costs CPU time.
            "yarn.nodemanager.resource-monitor.interval-ms": 60_000,
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
            "yarn.nodemanager.env-whitelist": _PASSED,
            "yarn.application.classpath": self.classpath.replace(":", ","),
        }

    def _mapred(self) -> dict[str, object]:
        options = " ".join((*_FLAGS, *_OPENS))
        return {
            "mapreduce.framework.name": "yarn",
            "mapreduce.application.classpath": self.classpath.replace(":", ","),
            "yarn.app.mapreduce.am.resource.mb": TASK_MB,
            "yarn.app.mapreduce.am.command-opts": f"-Xmx192m {options}",
            "yarn.app.mapreduce.am.staging-dir": "/user",
            "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": 200,
            "mapreduce.map.memory.mb": TASK_MB,
            "mapreduce.map.java.opts": f"-Xmx200m {options}",
            "mapreduce.reduce.memory.mb": TASK_MB,
            "mapreduce.reduce.java.opts": f"-Xmx256m {options}",
            "mapreduce.task.io.sort.mb": 64,
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
            # No reducer fetches before the last map is done: the time of the shuffle has no waiting for maps in it.
            "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
            "mapreduce.reduce.shuffle.parallelcopies": self.at_once,
            "mapreduce.job.running.reduce.limit": self.reduces_at_once,
            # A job that asks for it, and is small but for its bytes, runs in the program of its master.
            "mapreduce.job.ubertask.maxbytes": 1 << 40,
            "mapreduce.client.progressmonitor.pollinterval": 300,
            "mapreduce.client.completion.pollinterval": 300,
            "mapreduce.jobhistory.intermediate-done-dir": HISTORY,
            "mapreduce.jobhistory.jhist.format": "json",
            "mapreduce.shuffle.port": SHUFFLE_PORT,
        }


def _scheduler() -> dict[str, object]:
    """One queue. No host gets several tasks in one heartbeat, so that they are spread over the workers."""
    root = "yarn.scheduler.capacity"
    return {
        f"{root}.root.queues": "default",
        f"{root}.root.default.capacity": 100,
        f"{root}.maximum-am-resource-percent": "0.5",
        f"{root}.per-node-heartbeat.multiple-assignments-enabled": "false",
        f"{root}.node-locality-delay": 8,
    }


def _site(values: Mapping[str, object]) -> str:
    rows = (
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>" for name, value in values.items()
    )
    return "<configuration>\n" + "\n".join(rows) + "\n</configuration>\n"
