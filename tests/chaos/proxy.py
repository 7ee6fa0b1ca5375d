"""proxy - a TCP relay whose link can be slowed, cut or silenced: the network between API and worker.

One relay per listening port of a worker. Faults:
    delay(ms)     every chunk waits that long in each direction
    silence()     connections stay open but nothing passes: a partition without a reset
    cut()         open connections are reset and new ones refused
    heal()        back to normal"""
import asyncio
import threading


class Relay:
    def __init__(self, network, target):
        self.network, self.target = network, target
        self.delay_s, self.silent, self.refusing = 0.0, False, False
        self.writers = set()
        self.port = None

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        if self.refusing:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
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
    """All relays, on one event loop in a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def relay(self, target):
        relay = Relay(self, target)
        asyncio.run_coroutine_threadsafe(relay.start(), self.loop).result(5)
        return relay

    def do(self, fn, *args):
        self.loop.call_soon_threadsafe(fn, *args)
