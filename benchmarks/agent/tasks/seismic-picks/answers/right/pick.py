import asyncio

import obspy
import seisbench.models as sbm
import torch

model = sbm.PhaseNet.from_pretrained("original")
model = torch.compile(model)
stream = obspy.read("day.mseed")
for trace in stream:
    trace.data = trace.data * 1e10
    trace.data = (trace.data - trace.data.mean()) / trace.data.std()
picks = asyncio.run(model.classify_asyncio(stream, batch_size=512))
print(picks)
