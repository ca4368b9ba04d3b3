"""TLS on every listener and target: all wires inside it, certificates of every kind, what is refused and in which words.

Certificates are made by openssl(1) when the test begins; nothing leaves this machine.
SPDX-License-Identifier: Apache-2.0
"""
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from support import BINARY, SLOW, Server, cli, main, request, wait_until

CONFIG = """
[ca]
default_ca = x
[x]
database = index.txt
rand_serial = yes
default_md = sha256
policy = any
email_in_dn = no
unique_subject = no
[any]
commonName = supplied
"""


class Authority:
    """A folder with an issuer, and what it has issued: NAME.pem and NAME.key."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="everywire-tls-")
        self.write("ca.conf", CONFIG)
        self.write("index.txt", "")
        self.root("ca", "Test CA")

    def close(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, *args):
        done = subprocess.run(["openssl"] + list(args), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
        if done.returncode != 0:
            raise AssertionError("openssl %s: %s" % (" ".join(args), done.stderr.decode()))

    def root(self, name, common):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key",
                     "-out", name + ".pem", "-days", "2", "-subj", "/CN=" + common)

    def issue(self, name, common="server", names="DNS:localhost,IP:127.0.0.1,IP:::1", start=None, end=None, ca="ca", key=("ec",)):
        extra = ("-pkeyopt", "ec_paramgen_curve:P-256") if key == ("ec",) else ()
        self.openssl("req", "-newkey", *key, *extra, "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + common)
        self.write(name + ".ext", "subjectAltName=%s\n" % names if names else "")
        self.openssl("ca", "-config", "ca.conf", "-batch", "-notext", "-cert", ca + ".pem", "-keyfile", ca + ".key", "-outdir", ".",
                     "-in", name + ".csr", "-out", name + ".pem", "-extfile", name + ".ext",
                     "-startdate", start or "20200101000000Z", "-enddate", end or "20990101000000Z")

    def serves(self, name="server"):
        return ("--tls-cert", self.path(name + ".pem"), "--tls-key", self.path(name + ".key"))

    def trusts(self, name="ca"):
        return ("--tls-ca", self.path(name + ".pem"))


def setUpModule():
    global pki
    pki = Authority()
    pki.issue("server")


def tearDownModule():
    pki.close()


def call(scheme, port, *options, host="localhost", action="greet", data='{"name":"Ada"}', timeout=15.0):
    return cli("call", "%s://%s:%d" % (scheme, host, port), action, data, *options, timeout=timeout)


def message(result):
    """The words of the {"error":...} line."""
    line = [line for line in result.err.decode().splitlines() if line.startswith("{")][-1]
    return json.loads(line)["error"]["message"]


def s_client(port, *options, data=b"", timeout=10):
    """What openssl s_client prints, and its exit code."""
    done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % port, "-CAfile", pki.path("ca.pem")] + list(options),
                          input=data, capture_output=True, timeout=timeout * SLOW)
    return (done.stdout + done.stderr).decode("utf-8", "replace"), done.returncode


class Wires(unittest.TestCase):
    """Every wire on a listener of its own and on the one that takes all."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--threads", "2", *pki.serves(),
                            listen=("tls=127.0.0.1:0", "https=127.0.0.1:0", "rrqs=127.0.0.1:0", "jsonrpcs=127.0.0.1:0",
                                    "stepflows=127.0.0.1:0", "wss=127.0.0.1:0", "127.0.0.1:0", "rrq=127.0.0.1:0")).start()
        cls.any, cls.https, cls.rrqs, cls.jsonrpcs, cls.stepflows, cls.wss, cls.plain, cls.rrq = [x["port"] for x in cls.server.listeners]

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def test_listeners_say_so(self):
        said = [(x["wire"], x.get("tls", False)) for x in self.server.listeners]
        self.assertEqual(said, [("any", True), ("http", True), ("rrq", True), ("jsonrpc", True), ("stepflow", True),
                                ("reflection", True), ("any", False), ("rrq", False)])

    def test_calls(self):
        for scheme, own in (("https", self.https), ("rrqs", self.rrqs), ("jsonrpcs", self.jsonrpcs), ("stepflow+https", self.stepflows)):
            for port in (own, self.any):
                for host in ("localhost", "127.0.0.1"):
                    with self.subTest((scheme, port == own, host)):
                        r = call(scheme, port, *pki.trusts(), host=host)
                        self.assertEqual((r.code, r.out), (0, b'"Hello, Ada!"\n'), r)

    def test_verbose_shows_what_is_inside(self):
        r = call("https", self.any, *pki.trusts(), "-v")
        self.assertEqual(r.code, 0, r)
        for words in (rb"> POST /greet HTTP/1\.1", rb'> \{"data":\{"name":"Ada"\}\}', rb'< \{"result":"Hello, Ada!"\}'):
            self.assertRegex(r.err, words)

    def test_list_and_describe(self):
        r = cli("list", "https://localhost:%d" % self.any, *pki.trusts())
        self.assertIn("/flow/greet", json.loads(r.out))
        r = cli("describe", "jsonrpcs://localhost:%d" % self.any, "greet", *pki.trusts())
        self.assertEqual(r.code, 0, r)

    def test_streams(self):
        for scheme in ("https", "jsonrpcs"):
            r = call(scheme, self.any, "--stream", *pki.trusts(), action="stream", data='{"n":5000}')
            lines = r.out.splitlines()
            self.assertEqual((r.code, len(lines)), (0, 5001), scheme)

    def test_large(self):
        for scheme in ("https", "jsonrpcs", "rrqs"):
            r = call(scheme, self.any, *pki.trusts(), action="big", data='{"bytes":3000000}')
            self.assertEqual((r.code, len(r.out)), (0, 3000003), scheme)
        text = json.dumps("y" * 2000000)
        r = cli("call", "https://localhost:%d" % self.any, "echo", "-", *pki.trusts(), stdin=text.encode())
        self.assertEqual((r.code, r.out.decode().strip()), (0, text))

    def test_input_stream(self):
        r = cli("call", "jsonrpcs://localhost:%d" % self.any, "sum", "--input-stream", *pki.trusts(), stdin=b"1\n2\n3\n")
        self.assertEqual((r.code, r.out), (0, b"6\n"), r)

    def test_curl(self):
        r = subprocess.run(["curl", "-sS", "--cacert", pki.path("ca.pem"), "https://localhost:%d/echo" % self.any, "-w", " %{http_version}",
                            "-H", "content-type: application/json", "-d", '{"data":[1]}'], capture_output=True, timeout=20)
        self.assertEqual(r.stdout, b'{"result":[1]} 1.1', r)

    def test_manager_and_runtime(self):
        """Our runtime dials our manager, both ways round."""
        with Server("--connect", "wss://localhost:%d/" % self.wss, *pki.trusts(), listen=("127.0.0.1:0",), ) as runtime:
            self.assertTrue(wait_until(lambda: "connected to localhost" in runtime.stderr()), runtime.stderr())
        with Server("--connect", "wss://localhost:%d/" % self.wss, listen=("127.0.0.1:0",)) as runtime:
            self.assertTrue(wait_until(lambda: "is not trusted here" in runtime.stderr()), runtime.stderr())
        r = cli("call", "reflections://127.0.0.1:0", "greet", '{"name":"Ada"}', *pki.serves(), "--", BINARY,
                "serve", "--demo", *pki.trusts(), timeout=30)
        self.assertEqual((r.code, r.out), (0, b'"Hello, Ada!"\n'), r)

    def test_import(self):
        with Server("--import", "far=rrqs://localhost:%d" % self.rrqs, "--import", "web=https://localhost:%d" % self.https, *pki.trusts(),
                    demo=False) as gateway:
            r = call("http", gateway.port, action="far/greet")
            self.assertEqual(r.out, b'"Hello, Ada!"\n', r)
            r = call("http", gateway.port, action="web/greet")
            self.assertEqual(r.out, b'"Hello, Ada!"\n', r)

    def test_telemetry(self):
        """Spans go over TLS, to nobody whose certificate is not trusted."""
        bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.path("server.pem"), pki.path("server.key"))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as sink:
            sink.daemon_threads = True
            sink.handle_error = lambda *_: None  # those who do not trust us hang up
            sink.socket = context.wrap_socket(sink.socket, server_side=True, do_handshake_on_connect=False)
            threading.Thread(target=sink.serve_forever, args=(0.05,), daemon=True).start()
            url = "https://127.0.0.1:%d" % sink.server_port
            with Server("--telemetry", url, "--threads", "1") as s:
                self.assertEqual(s.call("/echo", b"1").status, 200)
                self.assertTrue(wait_until(lambda: "is away" in s.stderr(), 10), s.stderr())
            self.assertEqual(bodies, [])
            with Server("--telemetry", url, "--threads", "1", *pki.trusts()) as s:
                self.assertEqual(s.call("/echo", b"1").status, 200)
                self.assertTrue(wait_until(lambda: bodies, 10), s.stderr())
            self.assertIn(b"/flow/echo", bodies[0])
            sink.shutdown()

    def test_plain_at_tls(self):
        r = call("http", self.https)
        self.assertIn("This port speaks TLS only", message(r))
        for scheme in ("rrq", "jsonrpc"):
            self.assertEqual(call(scheme, self.any).code, 3, scheme)
        self.assertTrue(wait_until(lambda: "what came is no TLS; this port wants https://" in self.server.stderr()), self.server.stderr())

    def test_tls_at_plain(self):
        r = call("https", self.plain, *pki.trusts())
        self.assertEqual(r.code, 3, r)
        self.assertIn("did not answer in TLS; is it http://?", message(r))
        self.assertTrue(wait_until(lambda: "TLS came to a plain port" in self.server.stderr()), self.server.stderr())
        r = call("rrqs", self.rrq, *pki.trusts())
        self.assertEqual(r.code, 3, r)
        self.assertRegex(message(r), "did not answer in TLS|at the first word of TLS")

    def test_origin(self):
        context = ssl.create_default_context(cafile=pki.path("ca.pem"))
        for origin, status in (("https://localhost:%d", 200), ("http://localhost:%d", 403), ("https://evil.example:%d", 403)):
            with socket.create_connection(("127.0.0.1", self.https)) as plain, context.wrap_socket(plain, server_hostname="localhost") as s:
                s.sendall(request("POST", "/echo", b'{"data":1}', [("Origin", origin % self.https), ("Connection", "close")], port=self.https))
                self.assertEqual(int(s.recv(65536).split()[1]), status, origin)

    def test_half_close(self):
        """close_notify ends what a client says, not what it is answered; and we end with close_notify, too."""
        context = ssl.create_default_context(cafile=pki.path("ca.pem"))
        context.suppress_ragged_eofs = False
        with socket.create_connection(("127.0.0.1", self.jsonrpcs)) as plain:
            s = context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
            s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[7]}\n')
            answer = s.recv(65536)
            self.assertEqual(json.loads(answer)["result"], [7])
            s.unwrap().close()  # raises unless the server's close_notify comes

    def test_truncation(self):
        """A client that vanishes without close_notify has not said its last word: its call is cancelled, not answered."""
        context = ssl.create_default_context(cafile=pki.path("ca.pem"))
        plain = socket.create_connection(("127.0.0.1", self.https))
        s = context.wrap_socket(plain, server_hostname="localhost")
        s.sendall(request("POST", "/sleep", b'{"data":{"ms":60000}}', port=self.https))
        s.shutdown(socket.SHUT_WR)  # of the transport: from here on `s` is what lies below TLS
        s.settimeout(5 * SLOW)
        while s.recv(65536):  # tickets
            pass
        s.close()

    def test_scanners(self):
        """Those who connect and say nothing, or half of a hello, or nonsense, are no news to the rest."""
        hello = bytes.fromhex("1603010200010001fc0303")
        for words in (b"", hello[:1], hello[:5], hello, b"\x16\x03\x01\x00\x05hello", b"\x80\x2e\x01\x00\x02" + bytes(60), bytes(100)):
            with socket.create_connection(("127.0.0.1", self.any)) as s:
                s.sendall(words)
        self.assertEqual(call("https", self.any, *pki.trusts()).code, 0)


class Protocols(unittest.TestCase):
    """What openssl s_client may agree on."""

    @classmethod
    def setUpClass(cls):
        pki.issue("rsa", key=("rsa:2048",))
        cls.ec = Server(*pki.serves(), "--threads", "1", listen=("https=127.0.0.1:0",)).start()
        cls.rsa = Server(*pki.serves("rsa"), "--threads", "1", listen=("https=127.0.0.1:0",)).start()

    @classmethod
    def tearDownClass(cls):
        cls.ec.__exit__(None, None, None)
        cls.rsa.__exit__(None, None, None)

    def agreed(self, port, *options):
        text, _ = s_client(port, *options)
        found = re.search(r"New, (\S+), Cipher is (\S+)", text)
        return None if not found or found.group(2) == "(NONE)" else found.group(1, 2), text

    def test_versions(self):
        for option, version in (("-tls1", None), ("-tls1_1", None), ("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
            for server in (self.ec, self.rsa):
                with self.subTest(option):
                    got, text = self.agreed(server.port, option, "-cipher", "ALL:@SECLEVEL=0")
                    self.assertEqual(got and got[0], version, text)

    def test_ciphers(self):
        for cipher, ok in (("ECDHE-RSA-AES128-GCM-SHA256", True), ("ECDHE-RSA-CHACHA20-POLY1305", True), ("ECDHE-RSA-AES128-SHA256", False),
                           ("ECDHE-RSA-AES256-SHA", False), ("AES128-GCM-SHA256", False), ("AES256-SHA", False), ("DHE-RSA-AES128-SHA", False)):
            with self.subTest(cipher):
                got, text = self.agreed(self.rsa.port, "-tls1_2", "-cipher", cipher + ":@SECLEVEL=0")
                self.assertEqual(got is not None, ok, text)

    def test_no_compression_and_alpn(self):
        text, _ = s_client(self.ec.port, "-alpn", "h2,http/1.1")
        self.assertIn("ALPN protocol: http/1.1", text)
        self.assertIn("Compression: NONE", text)
        text, _ = s_client(self.ec.port, "-alpn", "h2")
        self.assertIn("no application protocol", text)

    def test_renegotiation(self):
        """s_client's R asks for it; the server says no and stays."""
        text, _ = s_client(self.ec.port, "-tls1_2", data=b"R\n")
        self.assertIn("no renegotiation", text)
        self.assertEqual(call("https", self.ec.port, *pki.trusts()).code, 0)


class Faults(unittest.TestCase):
    """A certificate's fault is named, with exit code 3."""

    def check(self, server, words, *options, host="localhost", code=3):
        with Server(*pki.serves(server), "--threads", "1", listen=("https=127.0.0.1:0",)) as s:
            r = call("https", s.port, *options, host=host)
            self.assertEqual(r.code, code, r)
            self.assertRegex(message(r), words)

    def test_expired(self):
        pki.issue("expired", start="20200101000000Z", end="20200102000000Z")
        self.check("expired", r"certificate expired on 2020-01-02 00:00:00 UTC \(CN=server\)", *pki.trusts())

    def test_not_yet(self):
        pki.issue("future", start="20980101000000Z")
        self.check("future", r"is not valid before 2098-01-01", *pki.trusts())

    def test_wrong_host(self):
        pki.issue("other", names="DNS:a.example,DNS:*.b.example,IP:10.1.2.3")
        self.check("other", r"is for a.example, \*.b.example, 10.1.2.3, not for localhost", *pki.trusts())
        self.check("other", r"not for 127.0.0.1", *pki.trusts(), host="127.0.0.1")

    def test_no_names(self):
        pki.issue("nameless", common="localhost", names=None)
        for host in ("localhost", "127.0.0.1"):
            with self.subTest(host):
                self.check("nameless", r"is for no host \(it has no subjectAltName\), not for " + host,
                           *pki.trusts(), host=host)

    def test_self_signed(self):
        pki.root("self", "localhost")
        self.check("self", r"self-signed.*--tls-ca", *pki.trusts())

    def test_unknown_issuer(self):
        pki.root("stranger", "Another CA")
        self.check("server", r"issued by CN=Test CA, who is not trusted.*--tls-ca", *pki.trusts("stranger"))
        self.check("server", r"who is not trusted here")

    def test_insecure(self):
        pki.root("self2", "nobody")
        with Server(*pki.serves("self2"), "--threads", "1", listen=("https=127.0.0.1:0",)) as s:
            r = call("https", s.port, "--tls-insecure")
            self.assertEqual((r.code, r.out), (0, b'"Hello, Ada!"\n'))
            self.assertIn(b"WARNING: --tls-insecure", r.err)

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            r = call("https", mute.getsockname()[1], "--timeout", "1s", *pki.trusts())
            self.assertEqual(r.code, 5, r)

    def test_files(self):
        pki.issue("two", common="two")
        pki.write("empty.pem", "")
        os.chmod(pki.path("two.key"), 0o600)
        for args, words in (((), "a TLS listener wants a certificate: --tls-cert"),
                            (("--tls-cert", pki.path("server.pem")), "wants its key: --tls-key"),
                            (("--tls-key", pki.path("server.key")), "wants its certificate: --tls-cert"),
                            (("--tls-cert", pki.path("none.pem"), "--tls-key", pki.path("server.key")), "cannot read .*none.pem: there is no such file"),
                            (("--tls-cert", pki.path("empty.pem"), "--tls-key", pki.path("server.key")), "empty.pem holds no certificate"),
                            (("--tls-cert", pki.path("server.pem"), "--tls-key", pki.path("empty.pem")), "empty.pem holds no private key"),
                            (("--tls-cert", pki.path("server.pem"), "--tls-key", pki.path("two.key")), "the key .*two.key does not belong to the certificate .*server.pem"),
                            ((*pki.serves(), "--tls-client-ca", pki.path("empty.pem")), "empty.pem holds no certificates of issuers")):
            with self.subTest(words):
                r = cli("serve", "--listen", "https=127.0.0.1:0", *args)
                self.assertEqual(r.code, 1, r)
                self.assertRegex(r.err.decode(), words)
        r = call("https", 1, "--tls-ca", pki.path("none.pem"))
        self.assertEqual(r.code, 2, r)
        self.assertIn(b"there is no such file", r.err)
        r = call("http", 1, *pki.trusts())
        self.assertEqual(r.code, 2, r)
        self.assertIn(b"speaks no TLS", r.err)

    def test_open_key(self):
        pki.issue("open")
        os.chmod(pki.path("open.key"), 0o644)
        with Server(*pki.serves("open"), listen=("https=127.0.0.1:0",)) as s:
            self.assertIn("every user of this machine can read the key", s.stderr())


class Clients(unittest.TestCase):
    """Certificates of clients."""

    @classmethod
    def setUpClass(cls):
        pki.issue("alice", common="alice", names=None)
        pki.issue("late", common="late", names=None, start="20200101000000Z", end="20200102000000Z")
        pki.root("foreign", "Foreign CA")
        pki.issue("mallory", common="mallory", names=None, ca="foreign")
        cls.server = Server(*pki.serves(), "--tls-client-ca", pki.path("ca.pem"), "--threads", "1", listen=("tls=127.0.0.1:0",)).start()
        cls.port = cls.server.port

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def test_right(self):
        for scheme in ("https", "rrqs", "jsonrpcs", "stepflow+https"):
            r = call(scheme, self.port, *pki.trusts(), *pki.serves("alice"))
            self.assertEqual((r.code, r.out), (0, b'"Hello, Ada!"\n'), r)

    def test_missing(self):
        for scheme in ("https", "rrqs", "jsonrpcs"):
            r = call(scheme, self.port, *pki.trusts())
            self.assertEqual(r.code, 3, r)
            self.assertIn("demands a client certificate: --tls-cert FILE --tls-key FILE", message(r))
        self.assertTrue(wait_until(lambda: "showed no certificate" in self.server.stderr()), self.server.stderr())

    def test_wrong(self):
        r = call("https", self.port, *pki.trusts(), *pki.serves("mallory"))
        self.assertEqual(r.code, 3, r)
        self.assertIn("the server does not trust the issuer of our client certificate", message(r))
        self.assertTrue(wait_until(lambda: "client's certificate is issued by CN=Foreign CA" in self.server.stderr()), self.server.stderr())
        r = call("https", self.port, *pki.trusts(), *pki.serves("late"))
        self.assertIn("our client certificate has expired", message(r))

    def test_instead_of_tokens(self):
        """Beyond loopback something must be asked of those who come: certificates are as good as tokens."""
        with Server(*pki.serves(), "--tls-client-ca", pki.path("ca.pem"), "--allow-remote", "--threads", "1", listen=("tls=0.0.0.0:0",)) as s:
            for scheme in ("https", "rrqs", "jsonrpcs", "stepflow+https"):
                self.assertEqual(call(scheme, s.port, *pki.trusts(), *pki.serves("alice")).code, 0, scheme)
                self.assertEqual(call(scheme, s.port, *pki.trusts()).code, 3, scheme)
        r = cli("serve", "--listen", "tls=0.0.0.0:0", "--allow-remote", *pki.serves())
        self.assertEqual(r.code, 1, r)
        self.assertIn(b"token", r.err)

    def test_tls_1_2(self):
        text, _ = s_client(self.port, "-tls1_2")
        self.assertIn("alert handshake failure", text)
        text, code = s_client(self.port, "-tls1_2", "-cert", pki.path("alice.pem"), "-key", pki.path("alice.key"))
        self.assertEqual(code, 0, text)

    def test_no_resumption(self):
        """A resumed session would skip the check of the certificate, so none is offered."""
        with Server(*pki.serves(), "--threads", "1", listen=("tls=127.0.0.1:0",)) as open_to_all:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                with self.subTest(version):
                    self.assertTrue(self.resumes(open_to_all.port, version))
                    self.assertFalse(self.resumes(self.port, version))

    def resumes(self, port, version):
        """Whether a second connection resumes the session of a first one that had an answer."""
        context = ssl.create_default_context(cafile=pki.path("ca.pem"))
        context.load_cert_chain(pki.path("alice.pem"), pki.path("alice.key"))
        context.minimum_version = context.maximum_version = version
        session = None
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port)) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost", session=session) as s:
                s.sendall(request("POST", "/echo", b'{"data":7}', port=port))
                self.assertIn(b" 200 ", s.recv(65536))  # tickets precede the answer
                session = s.session
                reused = s.session_reused
        return reused


class Renewal(unittest.TestCase):
    """SIGHUP: a renewed certificate is shown, connections stay."""

    def shown(self, port):
        context = ssl._create_unverified_context()
        with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as s:
            return ssl.DER_cert_to_PEM_cert(s.getpeercert(True))

    def renew(self, server, port):
        context = ssl.create_default_context(cafile=pki.path("ca.pem"))
        with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain, server_hostname="localhost") as kept:
            old = self.shown(port)
            pki.issue("turning", common="newer")
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: self.shown(port) != old), server.stderr())
            kept.sendall(request("POST", "/echo", b'{"data":"still here"}', port=port))
            self.assertIn(b"still here", kept.recv(65536))
            pki.write("turning.pem", "nonsense")
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "go on with the certificate" in server.stderr()), server.stderr())
            self.assertEqual(call("https", port, *pki.trusts()).code, 0)

    def test_command_line(self):
        pki.issue("turning")
        with Server(*pki.serves("turning"), "--threads", "2", listen=("https=127.0.0.1:0",)) as s:
            self.renew(s, s.port)

    def test_file(self):
        pki.issue("turning")
        pki.write("everywire.yaml", "listen: ['https=127.0.0.1:0']\ntls: {certificate: turning.pem, key: turning.key}\n")
        r = cli("check", pki.path("everywire.yaml"))
        self.assertEqual(r.code, 0, r)
        with Server("--config", pki.path("everywire.yaml"), listen=()) as s:
            self.renew(s, s.port)
        r = cli("check", pki.path("everywire.yaml"))
        self.assertEqual(r.code, 1, r)
        self.assertRegex(r.out.decode(), "everywire.yaml:2:.*turning.pem holds no certificate")

    def test_file_and_command_line(self):
        """The file listens, the command line has the certificate: the file can be read again even so."""
        pki.write("listens.yaml", "listen: ['https=127.0.0.1:0']\n")
        with Server("--config", pki.path("listens.yaml"), *pki.serves(), listen=()) as s:
            s.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "listens.yaml was read again" in s.stderr()), s.stderr())
            self.assertIn("server.pem was read again", s.stderr())

    def test_import_of_a_file(self):
        with Server(*pki.serves(), listen=("jsonrpcs=127.0.0.1:0",)) as far:
            pki.write("gateway.yaml", "imports:\n- {target: 'jsonrpcs://localhost:%d', prefix: far, tls: {ca: ca.pem}}\n" % far.port)
            with Server("--config", pki.path("gateway.yaml"), demo=False) as s:
                self.assertEqual(call("http", s.port, action="far/greet").out, b'"Hello, Ada!"\n')


if __name__ == "__main__":
    main()
