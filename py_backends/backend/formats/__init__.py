"""What kernels import for number formats that their model lacks: a module a model, for plug-ins' kernels too."""
