"""Pictures of results, a module each; `style` is what they share.

Each module has `draw(report) -> Figure`, which raises `style.NothingToDraw` with a sentence where the report holds
too little, and `describe(report) -> str`, the same in words for who does not see the picture.
"""
