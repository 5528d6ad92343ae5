"""Small named patches, each of which must turn a named test red: `run.py soak mutants`.

A patch file begins with lines `# <why this must not go unseen>` and `# test: <pytest node id>`.
"""
