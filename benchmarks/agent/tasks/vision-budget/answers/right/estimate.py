import sys

w, h, detail = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if detail == "low":
    print(85)
else:
    s = min(2048 / max(w, h), 1.0)
    a, b = int(w * s), int(h * s)
    if min(a, b) < 768:
        s = 768 / min(a, b)
        a, b = int(a * s), int(b * s)
    print(85 + 170 * (((a + 511) // 512) * ((b + 511) // 512)))
