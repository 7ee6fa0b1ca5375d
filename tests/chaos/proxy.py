"""proxy - a TCP relay whose link can be slowed, cut or silenced: the network in front of a worker.

A relay listens on its host and hands on to a port of the same host. Faults:
    delay_s       every chunk waits that long in each direction
    silent        connections stay open but nothing passes: a partition without a reset
    cut()         open connections are reset and new ones refused
    heal()        back to normal"""
import asyncio
import socket
import threading


class Relay:
    def __init__(self, target):
        self.target = target
        self.delay_s, self.silent, self.refusing = 0.0, False, False
        self.writers = set()
        self.port = None

    async def start(self, sock):
        await asyncio.start_server(self.serve, sock=sock)
        self.port = sock.getsockname()[1]

    async def serve(self, reader, writer):
        if self.refusing:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self.writers |= {writer, back}
        await asyncio.gather(self.pump(reader, back), self.pump(there, writer))
        self.writers -= {writer, back}

    async def pump(self, reader, writer):
        try:
            while chunk := await reader.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                while self.silent:
                    await asyncio.sleep(0.05)
                writer.write(chunk)
                await writer.drain()
            writer.write_eof()
        except OSError:
            pass
        finally:
            writer.close()

    def cut(self):
        self.refusing = True
        for writer in list(self.writers):
            writer.transport.abort()

    def heal(self):
        self.delay_s, self.silent, self.refusing = 0.0, False, False


class Network:
    """The relays of one host, on an event loop in a thread that lives there."""

    def __init__(self, host):
        self.host, self.loop = host, asyncio.new_event_loop()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        self.host.settle()
        self.loop.run_forever()

    def relay(self, target, port=0):
        relay = Relay(target)

        async def start():
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self.host.ip, port))
            await relay.start(sock)
        asyncio.run_coroutine_threadsafe(start(), self.loop).result(10)
        return relay

    def do(self, fn, *args):
        self.loop.call_soon_threadsafe(fn, *args)
