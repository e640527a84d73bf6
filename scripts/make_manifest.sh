#!/bin/sh
# Print the plain manifests for Kubernetes, which are the chart with the least that it needs: make_manifest.sh HELM
set -eu
cd "$(dirname "$0")/.."
echo '# Made from deploy/helm/fanlight by `make manifest`. docs/kubernetes.md'
"$1" template fanlight deploy/helm/fanlight --namespace default --set auth.usersSecret=fanlight-users
