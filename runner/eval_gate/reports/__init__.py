"""Reports of a run: `ReportView` computes its numbers and texts once, and each format lays them out."""
