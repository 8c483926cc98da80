"""Stage 4: typed nodes become edges."""
