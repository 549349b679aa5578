#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A proxy that tunnels every CONNECT to one port of this machine.

connect_proxy.py PORT LOG: prints its own port and serves until standard input
ends. LOG gets a line for each CONNECT: its target and its Proxy-Authorization.
"""
import socket
import sys
import threading

port, log = int(sys.argv[1]), open(sys.argv[2], "w", buffering=1)


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(c):
    head = b""
    while b"\r\n\r\n" not in head:
        data = c.recv(4096)
        if not data:
            return
        head += data
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    auth = [x for x in lines if x.lower().startswith("proxy-authorization:")]
    log.write(" ".join([method, target] + auth) + "\n")
    if method != "CONNECT":
        c.sendall(b"HTTP/1.1 405 no\r\nContent-Length: 0\r\n\r\n")
        c.close()
        return
    s = socket.create_connection(("127.0.0.1", port))
    c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=pump, args=(s, c), daemon=True).start()
    pump(c, s)


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)
print(listener.getsockname()[1], flush=True)


def accept():
    while True:
        c = listener.accept()[0]
        threading.Thread(target=serve, args=(c,), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
sys.stdin.read()
