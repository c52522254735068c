"""What a function of anybody's in Python needs of its model, beyond arrays: a module for each, by its backend's name.

Wrappers import its names in a worker. Whoever writes a wrapper only reads which there are: a model may not be here.

| name | what it does |
| --- | --- |
| `clear(array, elements)` | within a launch, zeros to the elements of this work item, or to 256 |
| `zeros_in_place_of(array)` | without a launch, the array with zeros: the same one, or another where none changes |
| `assign(array, result)` | what a function returned, to an array without NumPy's assignment |
| `exactly(arrays, counts)` | a context with arrays as long as the case |
| `SLICES` | that arrays of a launch are flat, and slices of them are arrays |
| `beneath(kernel)` | the kernel without what tunes it |
| `first_of(kernel, name)`, `options_of(kernel)` | what that gives first: a constant, and what it tells the compiler |
"""
