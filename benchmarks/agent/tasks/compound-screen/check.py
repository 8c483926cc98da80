"""Check of the task `compound-screen`: a screening script and PubChem requests."""

import json
import sys
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, run, squeezed

check = Check()
SECOND = [
    {"cid": 11, "molecular_weight": 200.0, "xlogp": 5.0, "h_bond_donor_count": 6, "h_bond_acceptor_count": 1},
    {"cid": 12, "molecular_weight": 600.5, "xlogp": 2.0, "h_bond_donor_count": 0, "h_bond_acceptor_count": 1},
    {
        "cid": 13,
        "molecular_weight": 450.0,
        "xlogp": 5.2,
        "h_bond_donor_count": 0,
        "h_bond_acceptor_count": 11,
    },
]


def screened():
    """Return the result of the script in a comparable form."""
    run("screen.py")
    result = load("screened.json")
    return [int(c) for c in result["kept"]], {str(k): int(v) for k, v in result["violations"].items()}


check.need(
    screened() == ([1, 4], {"1": 0, "2": 4, "3": 0, "4": 1, "5": 1, "6": 1}),
    "screen.py: result for compounds.json",
)
Path("compounds.json").write_text(json.dumps(SECOND), encoding="utf-8")
check.need(
    screened() == ([11], {"11": 1, "12": 1, "13": 2}), "screen.py: result for other compounds, at the borders"
)
a = load()
base = "https://pubchem.ncbi.nlm.nih.gov/rest/"
urls = {k: urllib.parse.unquote_plus(str(a.get(k))) for k in ("png", "assays", "drug_section")}
check.need(urls["png"] == base + "pug/compound/cid/2519/PNG?image_size=large", "png")
check.need(urls["assays"] == base + "pug/compound/cid/2519/assaysummary/JSON", "assays")
check.need(
    urls["drug_section"] == base + "pug_view/data/compound/2519/JSON?heading=Drug and Medication Information",
    "drug_section",
)
call = squeezed(str(a.get("similar"))).replace('"', "'")
check.need("get_compounds(smiles," in call and "searchtype='similarity'" in call, "similar: the search")
check.need("Threshold=85" in call and "MaxRecords=20" in call, "similar: threshold and limit")
check.need(close(a.get("per_second"), 5) and close(a.get("per_minute"), 400), "request limits")
check.done()
