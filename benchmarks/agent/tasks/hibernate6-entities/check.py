"""Check of the task `hibernate6-entities`: Java files and properties for Hibernate 6."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, squeezed, text

check = Check()
repository, entity = text("UserRepository.java"), text("User.java")
for name, source in (("UserRepository", repository), ("User", entity)):
    check.need("javax.persistence" not in source and "jakarta.persistence" in source, f"{name}: namespace")
check.need(re.search(r'"\s*update\s+User u set', repository, re.I), "UserRepository: the update query")
check.need(
    re.search(r'"\s*select u from User u join fetch u\.roles', repository, re.I),
    "UserRepository: the query of roles, without what is not needed",
)
check.need(
    "@TypeDef" not in entity and not re.search(r"@Type\(", entity), "User: the old type annotations are gone"
)
check.need("@JdbcTypeCode(SqlTypes.JSON)" in squeezed(entity), "User: the JSON column")
check.need("GenerationType.IDENTITY" in entity, "User: generation of ids")
settings = {}
for line in text("application.properties").splitlines():
    key, equals, value = line.partition("=")
    if equals and not line.lstrip().startswith(("#", "!")):
        settings[key.strip()] = value.strip()
base = "spring.jpa.properties.hibernate."
check.need("spring.jpa.database-platform" not in settings, "properties: no dialect")
check.need(settings.get("spring.jpa.hibernate.ddl-auto") == "validate", "properties: ddl-auto stays")
check.need(
    settings.get(base + "timezone.default_storage", "").upper() == "NORMALIZE", "properties: storage of times"
)
check.need(settings.get(base + "generate_statistics") == "true", "properties: statistics")
check.need(
    settings.get("logging.level.org.hibernate.stat", "").lower() == "debug",
    "properties: logger of statistics",
)
check.need(
    settings.get(base + "session.events.log.LOG_QUERIES_SLOWER_THAN_MS") == "250"
    or settings.get(base + "log_slow_query") == "250",
    "properties: slow queries",
)
check.done()
