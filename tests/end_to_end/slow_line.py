"""A line between sites that a test can cut, hold up, damage and listen to: a TCP forwarder in threads."""

import contextlib
import socket
import threading
import time


MOST_HEARD = 100 << 20


class Line:
    """Forwards connections from one address of the loopback to another one, both with one port."""

    def __init__(self, near: str, far: str, port: int):
        self.far = (far, port)
        self.heard = bytearray()  # what has passed, both ways
        self.may_pass = threading.Event()
        self.may_pass.set()
        self.bytes_per_second = float("inf")  # of each connection
        self.damages = 0                      # how many of the next pieces get a wrong byte
        self.connections: list[socket.socket] = []
        self.listener = socket.create_server((near, port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Takes connections until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                here, _ = self.listener.accept()
                self.may_pass.wait()
                try:
                    there = socket.create_connection(self.far)
                except OSError:
                    here.close()  # nobody listens there yet
                    continue
                self.connections += [here, there]
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self.forward, args=pair, daemon=True).start()

    def forward(self, here: socket.socket, there: socket.socket):
        """Passes bytes on until one end closes."""
        with contextlib.suppress(OSError):
            while piece := here.recv(1 << 16):
                self.may_pass.wait()
                if len(self.heard) < MOST_HEARD:
                    self.heard += piece
                if self.damages > 0:
                    self.damages -= 1
                    middle = len(piece) // 2
                    piece = piece[:middle] + bytes([piece[middle] ^ 1]) + piece[middle + 1:]
                if self.bytes_per_second != float("inf"):
                    time.sleep(len(piece) / self.bytes_per_second)  # what the line needs
                there.sendall(piece)
        for end in (here, there):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        here.close()  # each end is that of one thread

    def cut(self):
        """Ends all connections; new ones may come at once."""
        ended, self.connections = self.connections, []
        for end in ended:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Ends everything."""
        self.listener.close()
        self.may_pass.set()
        self.cut()
