"""A TLS server, and clients that ask it all the time; run as a program in a host of a lab. Standard library alone.

    tls_load.py serve CERTIFICATE KEY PORT        until standard input ends
    tls_load.py ask CERTIFICATE PORT ADDRESS…     likewise; then prints how many requests failed, as JSON

Each request is asked twice: on a connection of its own, whose handshake brings the certificate, and on one that stays.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import sys
import threading

BYTES = 60_000
PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 0.03


def serve(certificate: str, key: str, port: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
    threading.Thread(target=accept, args=(listener, context), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def accept(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, context), daemon=True).start()


def answer(connection: socket.socket, context: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as secure:
        while secure.recv(1):
            secure.sendall(b"x" * BYTES)


def request(secure: ssl.SSLSocket) -> None:
    """One byte there, all of the answer back."""
    secure.sendall(b"?")
    left = BYTES
    while left:
        got = len(secure.recv(left))
        if not got:
            raise OSError("the server ended the connection")
        left -= got


def connect(context: ssl.SSLContext, address: str, port: int) -> ssl.SSLSocket:
    plain = socket.create_connection((address, port), PATIENCE_SECONDS)
    plain.settimeout(PATIENCE_SECONDS)
    return context.wrap_socket(plain, server_hostname="server.test")


def ask(context: ssl.SSLContext, address: str, port: int, over: threading.Event, found: dict[str, object]) -> None:
    staying = None
    errors: list[str] = []
    count = 0
    while not over.wait(PAUSE_SECONDS):
        try:
            with connect(context, address, port) as fresh:
                request(fresh)
            count += 1
        except OSError as error:
            errors.append(f"new connection: {error}")
        try:
            staying = staying or connect(context, address, port)
            request(staying)
            count += 1
        except OSError as error:
            errors.append(f"old connection: {error}")
            staying = None
    found[address] = {"answered": count, "failed": errors}


def main() -> None:
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    context = ssl.create_default_context(cafile=sys.argv[2])
    over, found = threading.Event(), {}
    work = [
        threading.Thread(target=ask, args=(context, address, int(sys.argv[3]), over, found)) for address in sys.argv[4:]
    ]
    for each in work:
        each.start()
    print("ready", flush=True)
    sys.stdin.read()
    over.set()
    for each in work:
        each.join()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
