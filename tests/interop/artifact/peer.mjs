// GitHub's own client of the artifact service, one command a call; the answer is one line of JSON.
//   peer.mjs upload NAME FOLDER FILE...
//   peer.mjs upload-file - FOLDER FILE    (as it is, under its own name)
//   peer.mjs download NAME FOLDER
//   peer.mjs list
import { DefaultArtifactClient } from '@actions/artifact'
import { join } from 'node:path'

const [command, name, folder, ...files] = process.argv.slice(2)
const client = new DefaultArtifactClient()
const calls = {
  upload: () => client.uploadArtifact(name, files.map(file => join(folder, file)), folder),
  'upload-file': () =>
    client.uploadArtifact(name, files.map(file => join(folder, file)), folder, { skipArchive: true }),
  list: () => client.listArtifacts(),
  download: async () => {
    const { artifact } = await client.getArtifact(name)
    return client.downloadArtifact(artifact.id, { path: folder, expectedHash: artifact.digest })
  },
}
try {
  console.log('\nANSWER ' + JSON.stringify(await calls[command]()))
} catch (error) {
  console.log('\nANSWER ' + JSON.stringify({ error: error.message }))
}
