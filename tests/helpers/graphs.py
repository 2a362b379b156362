"""The neighbour graph of HidLDL, for tests that need one."""

from hidldl.graph import nearest_neighbors, weighted_graph


def similarity_graph(X, n_neighbors, sigma):
    return weighted_graph(nearest_neighbors(X, n_neighbors), sigma)
