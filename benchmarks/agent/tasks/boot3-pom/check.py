"""Check of the task `boot3-pom`: a pom.xml and the order of a migration."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, text

check = Check()
root = ElementTree.fromstring(re.sub(r'\sxmlns="[^"]*"', "", text("pom.xml")))
check.need(re.match(r"3\.2\.\d+$", root.findtext("parent/version", "").strip()), "version of the parent")
check.need(root.findtext("properties/java.version", "").strip() in ("17", "21"), "version of Java")
found = {
    f"{d.findtext('groupId', '').strip()}:{d.findtext('artifactId', '').strip()}": d
    for d in root.iter("dependency")
}
for old in (
    "javax.xml.bind:jaxb-api",
    "com.sun.xml.bind:jaxb-impl",
    "com.sun.xml.bind:jaxb-core",
    "javax.activation:javax.activation-api",
    "io.jsonwebtoken:jjwt",
):
    check.need(old not in found, f"{old} is gone")
for new in ("jakarta.xml.bind:jakarta.xml.bind-api", "org.glassfish.jaxb:jaxb-runtime"):
    check.need(new in found, new)
for part, scope in (("api", ("", "compile")), ("impl", ("runtime",)), ("jackson", ("runtime",))):
    d = found.get(f"io.jsonwebtoken:jjwt-{part}")
    version = d.findtext("version", "").strip() if d is not None else ""
    version = (
        root.findtext(f"properties/{version[2:-1]}", "").strip() if version.startswith("${") else version
    )
    check.need(d is not None and version == "0.12.3", f"jjwt-{part} in the guide's version")
    check.need(d is not None and d.findtext("scope", "").strip() in scope, f"jjwt-{part}: its scope")
check.need("org.springframework.boot:spring-boot-starter-web" in found, "other dependencies stay")
ORDER = ["boot-2.7", "java", "dependencies", "parent", "imports", "security", "http-clients", "tests"]
check.need(load().get("order") == ORDER, "order of the work packages")
check.done()
