"""Traffic between the sites of a wan_lab; each verb is one end, run inside a site. Standard library only.

echo PORT                                answers UDP packets until killed
ping ADDRESS PORT COUNT PERIOD           sends UDP packets, prints {"sent", "round_trips": [seconds, ...]}
sink PORT                                takes TCP connections until killed; answers each with the bytes a
                                         second that arrived between its first and last second
source ADDRESS PORT SECONDS CONGESTION   sends over TCP for so long, prints {"bits_per_second", "retransmits"}
"""

import json
import select
import socket
import struct
import sys
import threading
import time

CHUNK_BYTES = 1 << 18
TCP_INFO_TOTAL_RETRANSMITS_OFFSET = 100  # tcpi_total_retrans of struct tcp_info
LAST_ANSWER_SECONDS = 2


def echo(port: int):
    """Sends every packet back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", port))
        print("ready", flush=True)
        while True:
            packet, sender = server.recvfrom(65536)
            server.sendto(packet, sender)


def ping(address: str, port: int, count: int, period: float) -> dict:
    """Sends numbered packets, one a period, and matches the answers."""
    round_trips = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((address, port))
        start = time.monotonic()
        number = 0
        while number < count or time.monotonic() < start + count * period + LAST_ANSWER_SECONDS:
            if number < count and time.monotonic() >= start + number * period:
                client.send(struct.pack("d", time.monotonic()) + bytes(56))
                number += 1
            until = start + (number if number < count else count) * period
            if number == count:
                until += LAST_ANSWER_SECONDS
            if select.select([client], [], [], max(0.0, until - time.monotonic()))[0]:
                sent = struct.unpack("d", client.recv(64)[:8])[0]
                round_trips.append(time.monotonic() - sent)
            if len(round_trips) == count:
                break
    return {"sent": count, "round_trips": round_trips}


def drain(connection: socket.socket):
    """Receives to the end, then answers with the steady rate."""
    times, totals, total = [], [], 0
    while data := connection.recv(CHUNK_BYTES):
        total += len(data)
        times.append(time.monotonic())
        totals.append(total)
    first = next(i for i, at in enumerate(times) if at >= times[0] + 1)
    last = max(i for i, at in enumerate(times) if at <= times[-1] - 1)
    rate = 8 * (totals[last] - totals[first]) / (times[last] - times[first])
    connection.sendall(json.dumps({"bits_per_second": rate}).encode())
    connection.close()


def sink(port: int):
    """Takes any number of connections."""
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        while True:
            connection = server.accept()[0]
            threading.Thread(target=drain, args=[connection], daemon=True).start()


def source(address: str, port: int, seconds: float, congestion: str) -> dict:
    """One flow; the rate is that of the sink."""
    with socket.socket() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        client.connect((address, port))
        deadline = time.monotonic() + seconds
        data = bytes(CHUNK_BYTES)
        while time.monotonic() < deadline:
            client.send(data)
        client.shutdown(socket.SHUT_WR)
        answer = json.loads(client.recv(4096))
        info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return answer | {"retransmits": struct.unpack_from("I", info,
                                                           TCP_INFO_TOTAL_RETRANSMITS_OFFSET)[0]}


def main():
    """Runs one end."""
    verb, *arguments = sys.argv[1:]
    if verb == "echo":
        echo(int(arguments[0]))
    elif verb == "ping":
        print(json.dumps(ping(arguments[0], int(arguments[1]), int(arguments[2]), float(arguments[3]))))
    elif verb == "sink":
        sink(int(arguments[0]))
    else:
        print(json.dumps(source(arguments[0], int(arguments[1]), float(arguments[2]), arguments[3])))


if __name__ == "__main__":
    main()
