"""Stand-ins of catalogs on loopback, in memory: Glue's JSON protocol and Hive's metastore, as far as PyIceberg's
clients use them. Both can lose answers: the change is made, and the connection is closed."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = threading.Lock()


class Glue:
    """Databases and tables; UpdateTable swaps if the version is the one named (Glue's optimistic locking)."""

    def __init__(self):
        self.databases, self.tables, self.calls, self.lose = {}, {}, [], 0

    def answer(self, name, given):
        with WORDS:
            self.calls.append(name)
            made = getattr(self, name)(given)
            lost = name == "UpdateTable" and self.lose > 0
            self.lose -= lost
            return None if lost else made

    def CreateDatabase(self, given):
        self.databases[given["DatabaseInput"]["Name"]] = given["DatabaseInput"]
        return {}

    def GetDatabase(self, given):
        return {"Database": self._of(self.databases, given["Name"])}

    def GetDatabases(self, given):
        return {"DatabaseList": list(self.databases.values())}

    def CreateTable(self, given):
        made = given["TableInput"]
        self._of(self.databases, given["DatabaseName"])
        key = given["DatabaseName"], made["Name"]
        if key in self.tables:
            raise Refused("AlreadyExistsException")
        self.tables[key] = {**made, "DatabaseName": key[0], "VersionId": "0"}
        return {}

    def GetTable(self, given):
        return {"Table": self._of(self.tables, (given["DatabaseName"], given["Name"]))}

    def GetTables(self, given):
        """Two at a time."""
        self._of(self.databases, given["DatabaseName"])
        found = [t for (database, _), t in self.tables.items() if database == given["DatabaseName"]]
        start = int(given.get("NextToken", 0))
        more = {"NextToken": str(start + 2)} if start + 2 < len(found) else {}
        return {"TableList": found[start : start + 2], **more}

    def UpdateTable(self, given):
        key = given["DatabaseName"], given["TableInput"]["Name"]
        version = self._of(self.tables, key)["VersionId"]
        if given["VersionId"] != version:
            raise Refused("ConcurrentModificationException")
        self.tables[key] = {**given["TableInput"], "DatabaseName": key[0], "VersionId": str(int(version) + 1)}
        return {}

    def DeleteTable(self, given):
        del self.tables[given["DatabaseName"], given["Name"]]
        return {}

    @staticmethod
    def _of(found, key):
        if key not in found:
            raise Refused("EntityNotFoundException")
        return found[key]


class Refused(Exception):
    pass


@contextmanager
def glue():
    """The stand-in, and the options of its catalog."""
    made = Glue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, found = 200, None
            try:
                found = made.answer(self.headers["X-Amz-Target"].partition(".")[2], body)
            except Refused as error:
                status, found = 400, {"__type": str(error), "Message": str(error)}
            if found is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield (
            made,
            {
                "type": "glue", "glue.endpoint": f"http://127.0.0.1:{server.server_port}", "glue.region": "eu-north-1",
                "glue.access-key-id": "AKIASTANDIN", "glue.secret-access-key": "stand-in-secret",
            },
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()


class Hive:
    """A metastore whose tables are changed under a lock, as its writers of Iceberg do."""

    def __init__(self):
        from hive_metastore import ttypes

        self.types = ttypes
        self.databases, self.tables, self.calls, self.lose = {}, {}, [], 0
        self.holder, self.ids = {}, 0

    def get_all_databases(self):
        return list(self.databases)

    def create_database(self, database):
        self.databases[database.name] = database

    def get_database(self, name):
        return self._of(self.databases, name)

    def get_all_tables(self, db_name):
        return [name for database, name in self.tables if database == db_name]

    def get_table_objects_by_name(self, dbname, tbl_names):
        return [self.tables[dbname, name] for name in tbl_names]

    def get_table(self, dbname, tbl_name):
        return self._of(self.tables, (dbname, tbl_name))

    def create_table(self, tbl):
        self._of(self.databases, tbl.dbName)
        if (tbl.dbName, tbl.tableName) in self.tables:
            raise self.types.AlreadyExistsException(message=tbl.tableName)
        self.tables[tbl.dbName, tbl.tableName] = tbl

    def drop_table(self, dbname, name, deleteData):
        del self.tables[dbname, name]

    def alter_table_with_environment_context(self, dbname, tbl_name, new_tbl, environment_context):
        from thrift.transport.TTransport import TTransportException

        with WORDS:
            self.calls.append("alter")
            assert (dbname, tbl_name) in self.holder, "a table is changed without its lock"
            self.tables[dbname, tbl_name] = new_tbl
            if self.lose:
                self.lose -= 1
                # Its holder has gone, so that the lock times out.
                del self.holder[dbname, tbl_name]
                raise TTransportException(TTransportException.END_OF_FILE, "the answer is lost")

    def lock(self, rqst):
        with WORDS:
            self.ids += 1
            part = rqst.component[0]
            self.holder.setdefault((part.dbname, part.tablename), []).append(self.ids)
        return self.check_lock(self.types.CheckLockRequest(lockid=self.ids))

    def check_lock(self, rqst):
        with WORDS:
            first = any(ids[0] == rqst.lockid for ids in self.holder.values())
        state = self.types.LockState.ACQUIRED if first else self.types.LockState.WAITING
        return self.types.LockResponse(lockid=rqst.lockid, state=state)

    def unlock(self, rqst):
        with WORDS:
            for key, ids in list(self.holder.items()):
                left = [id for id in ids if id != rqst.lockid]
                self.holder[key] = left
                if not left:
                    del self.holder[key]

    def _of(self, found, key):
        if key not in found:
            raise self.types.NoSuchObjectException(message=str(key))
        return found[key]


@contextmanager
def hive():
    """The stand-in, and the options of its catalog."""
    from hive_metastore.ThriftHiveMetastore import Processor
    from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport, TTransportException

    made = Hive()
    processor, protocols = Processor(made), TBinaryProtocolFactory()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]

    def serve(client):
        peer = TSocket()
        peer.setHandle(client)
        protocol = protocols.getProtocol(TBufferedTransport(peer))
        try:
            while True:
                processor.process(protocol, protocol)
        except TTransportException:
            pass
        finally:
            peer.close()

    def accept():
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        options = {"type": "hive", "uri": f"thrift://127.0.0.1:{port}"}
        yield made, {**options, "lock-check-max-wait-time": "0.02", "lock-check-retries": "50"}
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
