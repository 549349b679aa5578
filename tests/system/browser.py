# SPDX-License-Identifier: MIT
"""Runs a Chromium without a screen, and controls it over the pipe that it has
for developers."""
import base64, json, os, select, shutil, subprocess, tempfile, time

PROGRAMS = "chromium", "chromium-browser", "google-chrome"


def program():
    return next((p for p in map(shutil.which, PROGRAMS) if p), None)


class Browser:
    def __init__(self, patience=1):
        self.patience = patience
        self.home = tempfile.mkdtemp(prefix="refrain-browser.")
        to, self.to = os.pipe()
        self.back, back = os.pipe()

        def pipes():  # Chromium reads from descriptor 3 and writes to 4
            a, b = os.dup(to), os.dup(back)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.log = open(self.home + "/log", "wb")
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--disable-sync",
             "--disable-component-update", "--disable-dev-shm-usage",
             "--disable-extensions", "--no-proxy-server",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
             f"--user-data-dir={self.home}/profile", "about:blank"],
            pass_fds=(3, 4), preexec_fn=pipes, stdout=self.log,
            stderr=self.log, env={**os.environ, "HOME": self.home})
        os.close(to)
        os.close(back)
        self.buffer = b""
        self.id = 0
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(domain + ".enable")

    def receive(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [],
                                        60 * self.patience)
            got = os.read(self.back, 1 << 20) if ready else b""
            assert got, "the browser does not answer"
            self.buffer += got
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            got = self.receive()
            if got.get("id") == self.id:
                assert "error" not in got, got
                return got["result"]
            self.events.append(got)

    def eval(self, expression):
        got = self.call("Runtime.evaluate", expression=expression,
                        returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def go(self, url):
        self.call("Page.navigate", url=url)

    def wait(self, expression, seconds=30):
        """Wait until the expression of JavaScript is true in the page."""
        until = time.monotonic() + seconds * self.patience
        # Until the page is loaded, its names are not defined.
        while not (got := self.call(
                "Runtime.evaluate", expression=f"!!({expression})",
                returnByValue=True)["result"].get("value") is True):
            if time.monotonic() > until:
                raise AssertionError(
                    f"not {expression}: " + self.eval(
                        "document.body ? document.body.innerText : ''"))
            time.sleep(0.05)
        return got

    def key(self, key):
        for kind in "rawKeyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def look(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=width < 700)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        got = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as f:
            f.write(base64.b64decode(got["data"]))

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events
                if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """Return the exceptions of the page, and the messages that the browser
        has logged."""
        return [e["params"] for e in self.events if e.get("method") in (
            "Runtime.exceptionThrown", "Log.entryAdded")]

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20 * self.patience)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)
