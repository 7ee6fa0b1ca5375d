// stream.mjs - one control stream of an API, over grpc-js and the .proto files themselves.
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };

export function load(protoDir) {
  const definition = loader.loadSync(["control.proto", "health.proto"], { ...options, includeDirs: [protoDir] });
  return grpc.loadPackageDefinition(definition);
}

export class Stream {
  constructor(packages, target, { version = 2, heartbeat = true } = {}) {
    this.client = new packages.promfabric.control.v1.Control(target, grpc.credentials.createInsecure());
    this.call = this.client.Connect();
    this.inbox = [];
    this.waiting = [];
    this.ended = new Promise((resolve) => {
      this.call.on("error", (error) => resolve(error));
      this.call.on("end", () => resolve(null));
    });
    this.call.on("data", (message) => this.#arrived(message));
    this.send({ hello: { protocol_version: version, api_id: "grpc-js", software: "test" } });
    const beat = () => this.send({ heartbeat: { sent_us: String(Math.round(performance.now() * 1000)) } });
    if (heartbeat) {
      beat();
      this.timer = setInterval(beat, 1000);
    }
    this.ended.then(() => clearInterval(this.timer));
  }

  #arrived(message) {
    const beat = message.heartbeat;
    if (message.body === "heartbeat") {
      if (!beat.echo) this.send({ heartbeat: { sent_us: beat.sent_us, echo: true } });
      else this.echoes = (this.echoes ?? 0) + 1;
      return;
    }
    this.inbox.push(message);
    this.waiting.splice(0).forEach((wake) => wake());
  }

  send(message) {
    this.call.write(message);
  }

  // The next message for which `wanted` holds; others stay in the inbox.
  async receive(wanted, timeoutMs = 15000) {
    const until = Date.now() + timeoutMs;
    for (;;) {
      const at = this.inbox.findIndex(wanted);
      if (at >= 0) return this.inbox.splice(at, 1)[0];
      if (Date.now() >= until) throw new Error(`nothing came in ${timeoutMs} ms`);
      await new Promise((wake) => {
        this.waiting.push(wake);
        setTimeout(wake, Math.max(1, until - Date.now()));
      });
    }
  }

  async receiveBody(body, work) {
    const message = await this.receive((m) => m.body === body && (work === undefined || m[body].work_id === String(work)));
    return message[body];
  }

  close() {
    clearInterval(this.timer);
    this.call.cancel();
    this.client.close();
  }
}
