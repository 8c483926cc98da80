import json


def choose(counts, n_segments):
    low, high = 2, 10
    t = 0.7
    n = counts["0.7"]
    if n > high:
        steps = [0.8, 0.9, 1.0, 1.1, 1.2]
        ok = lambda n: n <= high
    elif n < low:
        steps = [0.6, 0.5, 0.4]
        ok = lambda n: n >= low
    else:
        steps = []
    for s in steps:
        if ok(counts[str(s)]):
            t = s
            break
    return {"threshold": t, "max_speakers": high}


def merge(segments, gap=0.5):
    segments = sorted(segments, key=lambda x: (x[0], x[1]))
    out = [list(segments[0])]
    for s, e, spk in segments[1:]:
        if spk == out[-1][2] and s <= out[-1][1] + gap:
            out[-1][1] = max(out[-1][1], e)
        else:
            out.append([s, e, spk])
    return out


d = json.load(open("clusters.json"))
json.dump({**choose(d["counts"], d["n_segments"]), "merged": merge(d["segments"])}, open("speakers.json", "w"))
