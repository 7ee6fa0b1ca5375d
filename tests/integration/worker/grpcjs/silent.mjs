// silent.mjs - a client process to be stopped with SIGSTOP: opens a stream, asks for work, says so.
import { load, Stream } from "./stream.mjs";

const [protoDir, target, work] = process.argv.slice(2);
const stream = new Stream(load(protoDir), target);
stream.send({ assign_work: JSON.parse(work) });
await stream.receiveBody("work_accepted");
console.log("accepted");
