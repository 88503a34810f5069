// node live.js URL DIR: a live pull of URL, until stdin ends. Prints "ready" once it
// has caught up, then a line for each document that shows in the local feed: its id
// and when, in ns of the monotonic clock that all processes of the machine share.
const [,, url, dir] = process.argv;
const PouchDB = require('pouchdb').defaults({prefix: dir + '/'});
const db = new PouchDB('todos');
db.changes({live: true, since: 'now'}).on('change', c => process.stdout.write(c.id + ' ' + process.hrtime.bigint() + '\n'));
PouchDB.replicate(url, db, {live: true, retry: true, batch_size: 1000})
  .once('paused', () => process.stdout.write('ready\n'))
  .on('error', e => { console.error(e); process.exit(1); });
process.stdin.on('end', () => process.exit(0)).resume();
