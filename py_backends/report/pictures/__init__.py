"""Pictures of results, a module for each. They share `style`.

Each module has `draw(report) -> Figure`. It raises `style.NothingToDraw`, with a sentence, if the report holds too
little. `describe(report) -> str` says the same in words, for those who do not see the picture.
"""
