// node server.js PORT DIR: express-pouchdb on leveldb until SIGTERM.
const [,, port, dir] = process.argv;
const PouchDB = require('pouchdb').defaults({prefix: dir + '/'});
const handler = require('express-pouchdb')(PouchDB, {mode: 'minimumForPouchDB', inMemoryConfig: true, logPath: dir + '/log.txt'});
process.on('SIGTERM', () => process.exit(0));
new PouchDB('todos').info().then(() => require('express')().use('/', handler).listen(+port, '127.0.0.1'));
