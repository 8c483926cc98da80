python scripts/search_google_scholar.py "solid-state batteries" --year-start 2019 --year-end 2024 --sort citations --limit 20 --output batteries.json
python scripts/format_bibtex.py messy.bib --remove-duplicates --sort year --descending --output formatted.bib
python scripts/validate_citations.py formatted.bib --auto-fix --report validation.json --output final.bib
python scripts/validate_citations.py final.bib --dois-only
python scripts/doi_to_bibtex.py --input dois.txt --output dois.bib
