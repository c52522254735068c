"""The backends, a module each, named as the backend; what several share is in modules with an underscore in front.

(Not `backends`: that is what `py_backends.backends()` is called.)
"""
