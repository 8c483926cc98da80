"""TLS in front of a server that speaks none: answers PostgreSQL's request for TLS and passes the rest on."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# what a client sends before the handshake: its length, and the number of the request
SSL_REQUEST = bytes.fromhex("0000000804d2162f")


def make_certificate(folder: Path, name: str) -> Path:
    """Return a file with a certificate of its own authority for a host, and its key."""
    file, key = folder / f"{name}.pem", folder / f"{name}.key"
    what = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-days", "2"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *what]
    subprocess.run([*command, "-keyout", str(key), "-out", str(file)], check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file


@contextmanager
def tls_proxy(port: int, certificate: Path) -> Iterator[int]:
    """Yield the port at which clients with TLS reach the server at another port of this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["postgresql"])
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, context, port), daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        # close alone would not wake the thread that accepts
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, port), daemon=True).start()


def _serve(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError), client, socket.create_connection(("127.0.0.1", port)) as server:
        if client.recv(len(SSL_REQUEST), socket.MSG_WAITALL) != SSL_REQUEST:
            return  # a client that asks for no TLS is not let through
        client.sendall(b"S")
        with context.wrap_socket(client, server_side=True) as inner:
            back = threading.Thread(target=_pass_on, args=(server, inner), daemon=True)
            back.start()
            _pass_on(inner, server)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
