// node pull.js URL DIR: one pull of URL into an empty database on leveldb. Prints the
// documents that are there, the seconds and the CPU's microseconds of the pull alone, and
// the peak of the process in KiB.
const [,, url, dir] = process.argv;
const PouchDB = require('pouchdb').defaults({prefix: dir + '/'});
(async () => {
  const db = new PouchDB('todos');
  await db.info();
  const cpu = process.cpuUsage();
  const start = process.hrtime.bigint();
  await PouchDB.replicate(url, db, {batch_size: 1000});
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  const {user, system} = process.cpuUsage(cpu);
  const {doc_count} = await db.info();
  console.log(JSON.stringify({docs: doc_count, seconds, cpu: user + system, peak: process.resourceUsage().maxRSS}));
  await db.close();
})().catch(e => { console.error(e); process.exit(1); });
