"""The OpenFaaS gateway plugin: control API, data plane, decisions, node agent."""
