# smooth: u[i]/2 + (u[i-1] + u[i+1])/4, `steps` times; the ends stay. Each step makes a new array.


def smooth(u, c, n, steps):
    c[:] = u
    for _ in range(steps):
        c[1:-1] = c[1:-1] / 2 + (c[:-2] + c[2:]) / 4
