"""
What a launcher may do, tried from within its pod, with the account that it has been given.

Its pod has to be there for that: a permission is what the API server answers, whatever anybody says of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from testbed.mpijobs import MpiJob

Request = tuple[str, str]
"""Method and path."""

# Answers to who may: an exec begins.
SWITCHED, OK, FORBIDDEN = 101, 200, 403

# Runs in the launcher's pod.
_PROGRAM = """
import http.client, json, os, ssl, sys
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
tls = ssl.create_default_context(cafile=f"{folder}/ca.crt")
with open(f"{folder}/token") as file:
    headers = {"Authorization": f"Bearer {file.read()}", "Content-Length": "0"}
upgrade = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
}
server = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
answers = {}
for what, (method, path) in json.loads(sys.argv[1]).items():
    connection = http.client.HTTPSConnection(*server, context=tls, timeout=20)
    connection.request(method, path, headers={**headers, **(upgrade if "/exec?" in path else {})})
    answers[what] = connection.getresponse().status
    connection.close()
print(json.dumps(answers))
"""


def command(namespace: str, pod: str) -> Request:
    """To start a command in a pod."""
    return "GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/exec?command=true&stdout=true"


def answers(job: MpiJob, requests: Mapping[str, Request]) -> dict[str, int]:
    """What the API server answers to each, when the launcher of the job asks."""
    [launcher] = job.pods("launcher")
    said = job.namespace.kubectl.execute(
        launcher["metadata"]["name"], "python3", "-c", _PROGRAM, json.dumps(requests)
    )
    found: dict[str, int] = json.loads(said)
    return found
