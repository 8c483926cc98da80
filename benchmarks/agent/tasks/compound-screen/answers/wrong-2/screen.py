import json

kept, violations = [], {}
for c in json.load(open("compounds.json")):
    logp = c["xlogp"]
    rules = [c["molecular_weight"] <= 500, logp <= 5 if logp else None, c["h_bond_donor_count"] <= 5, c["h_bond_acceptor_count"] <= 10]
    violations[str(c["cid"])] = sum(r is False for r in rules)
    if c["molecular_weight"] and 200 <= c["molecular_weight"] <= 600 and logp and -1 <= logp <= 5:
        kept.append(c["cid"])
json.dump({"kept": kept, "violations": violations}, open("screened.json", "w"))
