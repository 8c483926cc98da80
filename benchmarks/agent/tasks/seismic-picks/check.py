"""Check of the task `seismic-picks`: a picking script and the right models."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, squeezed, text

check = Check()
a = load()
for key, names in (
    ("denoising", "DeepDenoiser SeisDAE"),
    ("depth", "DepthPhaseNet DepthPhaseTEAM"),
    ("detection_only", "CRED"),
    ("low_frequency", "LFEDetect"),
    ("detection_and_picking", "EQTransformer OBSTransformer PickBlue"),
):
    check.need(sorted(map(str, a.get(key, []))) == names.split(), f"models: {key}")
source = re.sub(r"#.*", "", text("pick.py"))
flat = squeezed(source)
check.need(re.search(r"PhaseNet\.from_pretrained\(['\"]original['\"]", flat), "pick.py: the released weights")
check.need("classify_asyncio(" in flat, "pick.py: picks by the asynchronous interface")
check.need("torch.compile(" in flat, "pick.py: the model is compiled")
check.need(re.search(r"1e\+?(9|1\d)|10\*\*1[0-5]|10{9,15}\b", flat), "pick.py: amplitudes are scaled up")
check.need(("mean(" in flat and "std(" in flat) or "normalize(" in flat, "pick.py: amplitudes are normalized")
check.need(not re.search(r"\.slide\(|\.slice\(|\.trim\(", flat), "pick.py: the stream is not cut up")
check.done()
