"""Algorithm 1 as the paper prints it: dense matrices, loops over rows and entries, a full SVD. Slow on purpose."""

import math

import numpy as np


def laplacian(X, n_neighbors, sigma):
    n = len(X)
    A = np.zeros((n, n))
    neighbors = []
    for i in range(n):
        by_distance = sorted((math.dist(X[i], X[j]), j) for j in range(n) if j != i)
        neighbors.append({j for _, j in by_distance[:n_neighbors]})
    for i in range(n):
        for j in range(n):
            if j in neighbors[i] or i in neighbors[j]:
                A[i, j] = math.exp(-(math.dist(X[i], X[j]) ** 2) / (2 * sigma**2))
    return np.diag(A.sum(axis=1)) - A


def algorithm1(G, D_o, M, alpha, rho=2.0, step=0.01, max_iter=100, tol=1e-3, constraint=True):
    n, m = D_o.shape
    A = np.ones((n, m))
    B = np.ones((n, m))
    Lambda = np.ones((n, m))
    Lambda_prime = np.ones((n, m))
    D = D_o.copy()
    t = 1
    while True:
        # Eq. 14, one gradient step; without the constraint there is no B.
        gradient = G @ D + Lambda + rho * (D - A)
        if constraint:
            gradient = gradient + Lambda_prime + rho * (D - B)
        D = D - step * gradient
        # Eq. 15
        for i in range(n):
            for j in range(m):
                if D[i, j] < 0:
                    D[i, j] = 0
            total = sum(D[i, j] for j in range(m))
            for j in range(m):
                D[i, j] = D[i, j] / total if total > 0 else 1 / m
        # Eq. 16
        U, s, Vt = np.linalg.svd(D + Lambda / rho, full_matrices=False)
        A = U @ np.diag([max(value - alpha / rho, 0) for value in s]) @ Vt
        # Eq. 18
        if constraint:
            for i in range(n):
                numerator = sum((rho * D[i, k] + Lambda_prime[i, k]) * D_o[i, k] * M[i, k] for k in range(m))
                denominator = rho * sum(D_o[i, k] ** 2 * M[i, k] for k in range(m))
                for j in range(m):
                    if M[i, j]:
                        B[i, j] = numerator / denominator * D_o[i, j]
                    else:
                        B[i, j] = D[i, j] + Lambda_prime[i, j] / rho
        # Eq. 19
        Lambda = Lambda + rho * (D - A)
        residual = abs(D - A).max()
        if constraint:
            Lambda_prime = Lambda_prime + rho * (D - B)
            residual = max(residual, abs(D - B).max())
        if t >= max_iter or residual < tol:
            return D, t
        t = t + 1
