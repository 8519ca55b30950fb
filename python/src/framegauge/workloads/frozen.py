"""Programs of a cluster, stopped while nothing is measured.

Daemons send heartbeats all the time, and counters of several places cannot be read at the same moment: a packet between
two readings would be missing in one of them. Whatever ends a run early kills what is stopped, too.
"""

from __future__ import annotations

from framegauge.workloads.tasks import Task

__all__ = ["resume", "stop"]

SIGNAL_SECONDS = 60.0  # for all processes of a host to be stopped
# After which no stopped program's kernel owes an acknowledgement: Linux delays one by at most 0.2 s (TCP_DELACK_MAX).
DRAINED_SECONDS = 0.25
# Signals every process of the host whose environment has a word, those that daemons have started among them, until
# none is left that is not stopped (T), or that is; what is forked meanwhile is found by the next look.
_SIGNAL = """\
cd /proc || exit
while :; do
    found=
    for process in [0-9]*; do
        [ "$process/ns/net" -ef self/ns/net ] && grep -qzxF "$2" "$process/environ" || continue
        read -r line < "$process/stat" || continue
        case ${line##*) } in $3) ;; *) kill -s "$1" "$process" && found=1 ;; esac
    done 2>/dev/null
    [ -n "$found" ] || break
    sleep 0.01
done
sleep "$4"
"""


def stop(hosts: tuple[str, ...], word: str) -> Task:
    """Stops every process with this word in its environment, and waits until the last packets have arrived."""
    return _signal(hosts, word, "STOP", "T*", DRAINED_SECONDS)


def resume(hosts: tuple[str, ...], word: str) -> Task:
    """Has what `stop` has stopped go on."""
    return _signal(hosts, word, "CONT", "[!T]*", 0.0)


def _signal(hosts: tuple[str, ...], word: str, name: str, reached: str, then_seconds: float) -> Task:
    words = (name, word, reached, str(then_seconds))
    return Task(hosts, ("bash", "-c", _SIGNAL, "bash", *words), SIGNAL_SECONDS)
