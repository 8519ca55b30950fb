"""Clients in the emulated machine that ask a TLS server all the time, with Debian's openssl alone."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.hosts.emulated import Emulated

__all__ = ["asked"]

PORT = 4433
BYTES = 60_000  # of an answer, besides the certificate
NAMES = 260  # in the certificate, so that it has over 9,000 bytes
PATIENCE_SECONDS = 20  # of a client: the machine is slow
# A server takes one client after the other, so each client has one of its own. Both end with the file `on`.
SERVE = """\
cd /run/tls && exec openssl s_server -{family} -accept {port} -cert server.pem -key server.key -quiet -WWW
"""
ASK = """\
cd /run/tls && answered=0
while [ -e on ]; do
    begun=$(date +%s)
    if printf 'GET /answer HTTP/1.0\\r\\n\\r\\n' | timeout {patience} openssl s_client -connect {address}:{port} \
        -CAfile server.pem -verify_return_error -quiet >{name}.out 2>{name}.error &&
        [ "$(wc -c <{name}.out)" -ge {bytes} ]; then
        answered=$((answered + 1))
    else
        echo "after $(($(date +%s) - begun)) s, $(wc -c <{name}.out) bytes: $(tail -n 1 {name}.error)" >>{name}.errors
    fi
done
echo "$answered" >{name}.found.new && mv {name}.found.new {name}.found
"""


@contextlib.contextmanager
def asked(
    there: Emulated, server: str, addresses: Sequence[str], clients: Sequence[str]
) -> Iterator[dict[str, tuple[int, list[str]]]]:
    """Every client asks every address of the server as long as the block lasts; after it, by client and address: how
    many requests were answered with all bytes, and a line for each that failed. Each is a connection of its own."""
    found: dict[str, tuple[int, list[str]]] = {}
    there.run("rm -rf /run/tls && mkdir /run/tls && touch /run/tls/on")
    for name, text in zip(("server.pem", "server.key"), _certificate(), strict=True):
        there.run(f"cat >/run/tls/{name}", given=text)
    there.run(f"head -c {BYTES} /dev/zero >/run/tls/answer")
    pairs = [(client, address) for client in clients for address in addresses]
    try:
        for number, (_, address) in enumerate(pairs):
            said = {"family": 6 if ":" in address else 4, "port": PORT + number}
            _begin(there, server, f"serve{number}", SERVE.format(**said))
        for number, (client, address) in enumerate(pairs):
            where = f"[{address}]" if ":" in address else address
            _begin(there, client, f"ask{number}", ASK.format(
                address=where, port=PORT + number, name=f"ask{number}", bytes=BYTES, patience=PATIENCE_SECONDS,
            ))  # fmt: skip
        yield found
        there.run("rm /run/tls/on")
        for number, (client, address) in enumerate(pairs):
            wait = f"until [ -e /run/tls/ask{number}.found ]; do sleep 0.2; done"
            there.run(f"timeout 50 sh -c '{wait}'")
            answered = int(there.run(f"cat /run/tls/ask{number}.found"))
            failed = there.run(f"touch /run/tls/ask{number}.errors && cat /run/tls/ask{number}.errors").splitlines()
            found[f"{client} {address}"] = answered, failed
    finally:
        for number in range(len(pairs)):
            for name in (f"ask{number}", f"serve{number}"):
                there.run(f"kill $(cat /run/tls/{name}.pid)", check=False)


def _begin(there: Emulated, host: str, name: str, script: str) -> None:
    """Starts a script in a host, with its process in a file."""
    there.run(f"cat >/run/tls/{name}.sh", given=script)
    there.run(
        f"ip netns exec {host} setsid sh /run/tls/{name}.sh </dev/null >/run/tls/{name}.log 2>&1 & "
        f"echo $! >/run/tls/{name}.pid"
    )


def _certificate() -> tuple[str, str]:
    """A certificate of over 9,000 bytes, as it is sent, and its key."""
    names = ",".join(f"DNS:a-long-name-of-host-{number}.server.test" for number in range(NAMES))
    with tempfile.TemporaryDirectory() as place:
        pem, key = Path(place, "pem"), Path(place, "key")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "9", "-subj", "/CN=server.test", "-addext", f"subjectAltName={names}", "-keyout", key,
             "-out", pem],
            check=True, capture_output=True,
        )  # fmt: skip
        return pem.read_text(), key.read_text()
