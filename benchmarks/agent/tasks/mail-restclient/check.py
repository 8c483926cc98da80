"""Check of the task `mail-restclient`: a Java service moved to RestClient."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, squeezed, text

check = Check()
source = re.sub(r"//.*", "", text("MailService.java"))
flat = squeezed(source)
check.need("RestTemplate" not in flat, "RestTemplate is gone")
check.need(
    "RestClient.create(" in flat
    or "RestClient.builder()" in flat
    or re.search(r"MailService\(RestClient(\.Builder)?\w+", flat),
    "the client is made",
)
parts = {
    n: squeezed(p)
    for n, p in re.findall(r"public\s+\S+\s+(verify|send|remove)\s*(\(.*?(?=\n    public|\Z))", source, re.S)
}
verify, send, remove = (parts.get(n, "") for n in ("verify", "send", "remove"))
check.need(".get()" in verify and ".retrieve()" in verify, "verify: a GET that is sent")
check.need(re.search(r"email=\{\w*\}\"|queryParam\(\"email\",\"?\{", verify), "verify: a URI template")
check.need(
    "newParameterizedTypeReference<Map<String,Object>>(){}" in verify
    or "newParameterizedTypeReference<>(){}" in verify,
    "verify: a generic map",
)
check.need(re.search(r"!=null|==null|Optional\.ofNullable|Objects\.", verify), "verify: an empty answer")
check.need(
    ".post()" in send and ".contentType(MediaType.APPLICATION_JSON)" in send and ".body(payload)" in send,
    "send: a POST with type and body",
)
check.need(".retrieve()" in send and ".toBodilessEntity()" in send, "send: the request goes out")
check.need(
    ".delete()" in remove and re.search(r"/mails/\{\w*\}\"", remove), "remove: a DELETE with a URI template"
)
check.need(
    re.search(r"\.onStatus\((HttpStatusCode::is4xxClientError|\w+->\w+\.is4xxClientError\(\)),", remove),
    "remove: handler of 4xx answers",
)
check.need("thrownewMailNotFoundException(id)" in remove, "remove: its exception")
check.need(".retrieve()" in remove and ".toBodilessEntity()" in remove, "remove: the request goes out")
check.need(
    0 <= remove.find(".retrieve()") < remove.find(".onStatus(") < remove.find(".toBodilessEntity()"),
    "remove: order of the calls",
)
check.done()
