export const listAlertsTool = {
  name: 'list_alerts',
  description: 'Official weather warnings for a region.',
  category: 'read',
  version: '0.3.0',
  status: 'active',
  schema: {
    region: { type: 'string' },
  },
  execute: async ({ region }: { region: string }) => fetch(`https://weather.example/alerts/${region}`),
};
