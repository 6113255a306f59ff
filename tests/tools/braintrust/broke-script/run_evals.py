raise SystemExit("the service is down")
