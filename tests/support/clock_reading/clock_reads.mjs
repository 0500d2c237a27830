// An agent on Node that puts all it can find of time and chance into what it says: one JSON list on stdout.
import { spawn, spawnSync } from 'node:child_process';
import crypto, { randomBytes, randomFill, randomInt, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

const said = [];
const look = () => [Date.now(), Math.random(), randomUUID()];

said.push(new Date(), Date.now(), Date(), new Date().toLocaleString(), new Date(0));
said.push(new Intl.DateTimeFormat('en', { timeStyle: 'full' }).format());
said.push(performance.timeOrigin);
said.push(Math.random(), Math.random(), randomUUID(), randomBytes(5).toString('hex'), randomInt(1e9));
said.push([...crypto.getRandomValues(new Uint16Array(4))], globalThis.crypto.randomUUID());
said.push((await promisify(randomBytes)(70)).toString('hex'), await promisify(randomInt)(5, 1e6));
said.push((await promisify(randomFill)(Buffer.alloc(6))).toString('hex'));
await new Promise((done) => setTimeout(done, performance.now() % 5));
said.push(look());
const program = ['-e', 'console.log(Date.now(), crypto.randomUUID())'];
for (const env of [undefined, {}]) {
  said.push(String(spawnSync(process.execPath, program, { env }).stdout));
  const child = spawn(process.execPath, program, { env });
  for await (const piece of child.stdout) said.push(String(piece));
}
const worker = new Worker(
  `require('worker_threads').parentPort.postMessage([Date.now(), Math.random()])`,
  { eval: true },
);
said.push(await new Promise((done) => worker.once('message', done)));
if (!(new Date() instanceof Date) || !(new (class extends Date {})() instanceof Date)) throw new Error('Date');
if (process.env.ORIGIN) {
  for (const one of said) {
    const answer = await fetch(`${process.env.ORIGIN}/say`, { method: 'POST', body: JSON.stringify([one]) });
    await answer.arrayBuffer();
  }
}
console.log(JSON.stringify(said));
