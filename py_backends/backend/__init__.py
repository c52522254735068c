"""The backends: a module for each, of its name. What several share is in modules with an underscore in front.

The folder is not called `backends`, since that is the function `py_backends.backends()`.
"""
