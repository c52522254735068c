"""What a function of anybody's in Python needs of its model, beyond arrays: a module for each, by its backend's name.

Wrappers import its names in a worker. Whoever writes a wrapper only reads which there are: a model may not be here.

`clear(array, elements)` writes, within a launch, zeros to the elements of this work item, or to 256.
`zeros_in_place_of(array)` gives, without a launch, the array with zeros: the same one, or another where none changes.
`assign(array, result)` puts what a function returned into an array without NumPy's assignment.
`exactly(arrays, counts)` is a context with arrays as long as the case.
`SLICES` says that arrays of a launch are flat, and slices of them are arrays.
`beneath(kernel)` is the kernel without what tunes it.
`first_of(kernel, name)` and `options_of(kernel)` are what that gives first: a constant, and what the compiler is told.
"""
