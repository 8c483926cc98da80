python scripts/rearrange.py template.pptx working.pptx 0,7
python scripts/inventory.py working.pptx text-inventory.json
python scripts/replace.py working.pptx replacement-text.json output.pptx
python scripts/thumbnail.py output.pptx check --cols 6
